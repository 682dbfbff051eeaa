"""The same as the command line, in a browser on this machine: it looks, and writes down what a person answers."""
