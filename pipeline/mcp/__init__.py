"""A face of redfirst for agents of other programs: recipes and runs as tools of the Model Context Protocol.

Like the command line it only finds words for what `pipeline.service` does. The SDK is an extra, and imported
when a client is served.
"""
