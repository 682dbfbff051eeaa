"""What is known of each language, and how a tree is measured."""
