"""What an owner looks at: `plots`, pictures of a fit; `sketch`, one for a terminal. Confidential.

The report: `figures` collects what it says of a fit, in a size that does not grow with the records
(`summaries`); `owner` makes the page of that, with its `parts` and with `pictures`. `html`, `charts` with
their `axes` and `style` are what pages are made of: elements, pictures with their numbers, one stylesheet.
They hold nothing confidential.
"""
