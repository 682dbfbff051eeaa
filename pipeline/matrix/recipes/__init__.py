"""What is a workflow that somebody wrote in a file, is it sound, and what would it do?

Pure: a text in, a recipe or all that is wrong with it out; whoever finds files and asks agents stands elsewhere.
Start with `model.py`, what a file may say; `check.py` collects what is wrong with it, `plan.py` says in which order
its steps would run.
"""
