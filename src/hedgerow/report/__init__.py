"""What an owner looks at before deciding: `plots`, the pictures of a fit. Confidential."""
