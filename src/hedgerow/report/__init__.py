"""Pictures of a fit (`plots`). Confidential."""
