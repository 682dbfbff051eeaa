"""The discount codes that the shop hands out, and what they take off, in percent."""

PERCENT = {"WELCOME": 5}
