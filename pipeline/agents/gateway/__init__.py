"""What stands between an agent and its model? One address, with the user's credential on our side only.

A box with network `model` has one socket to connect to. What comes in there is judged (`rules`), given the credential
and carried to the configured service and nowhere else (`proxy`, `route`), and written down. Each connection carries one
request, so that nothing can hide behind one. What models take is read off their answers (`usage`) and held to an
allowance (`spending`); a service that is of no use now stops the dispatch (`failing_service`).
"""
