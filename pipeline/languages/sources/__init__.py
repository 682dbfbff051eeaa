"""What is read from source texts, whatever their language: pure, and asked through `pipeline.languages.readers`."""
