"""Before looking at the data: which weights (`advise`, from `candidates`) and which box (`elicit`)."""
