"""redfirst's pipeline: decisions are data (`routing`), agents propose (`dispatch`), the harness measures (`steps`)."""

VERSION = "0.1.0"
