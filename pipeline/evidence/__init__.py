"""What a measured test run proves: classification, the RED ledger, GREEN. Pure: values in, values out."""
