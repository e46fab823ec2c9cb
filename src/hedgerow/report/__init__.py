"""What an owner looks at: `plots`, pictures of a fit; `sketch`, one for a terminal. Confidential."""
