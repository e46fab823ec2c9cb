"""What an owner looks at before deciding: `plots`, pictures of a fit; `sketch`, on a terminal. Confidential."""
