"""What an owner looks at: `plots`, pictures of a fit; `sketch`, one for a terminal. Confidential.

`style`, `html` and `charts` are what pages are made of: a stylesheet, elements, pictures with their numbers.
"""
