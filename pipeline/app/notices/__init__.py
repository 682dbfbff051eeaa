"""What programs and people are told of runs without asking: events are sent to the sinks of `[notify]`.

Start reading at `delivery.Notices`; `sinks` sends one event to one sink, `cursor` remembers what was sent.
"""
