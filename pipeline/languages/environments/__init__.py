"""What finds the environment of a project on the host: development shells, versions, installed packages."""
