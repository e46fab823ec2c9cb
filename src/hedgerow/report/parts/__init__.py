"""Parts of the owner's page: `scrutiny`, whether the price holds; `structure`, copies beside the original and
what they are worth; `lost`, whole tables. Confidential.
"""
