"""Do the default tests notice when the mathematics changes?"""
