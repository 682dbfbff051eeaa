"""How is a project's environment found on the host: development shells, versions, installed packages?"""
