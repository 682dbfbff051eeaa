"""The MCP server of redfirst: agents of other programs list and start recipes and read runs with its tools.

Like the command line it only finds words for what `pipeline.app` does. The SDK is an extra, and imported
when a client is served.
"""
