# For those who receive a release: read, check and combine its copies, from the downloaded folder alone.
#
#   source("receive.R")                        # this file, beside the copies
#   public <- receive_read(".")                # $tables, a data frame for each copy, and $certificate
#   receive_verify(".")                        # character(0): every file is the one that the certificate knows
#   receive_intervals(".", function(table) c(mean_wage = mean(table$wage)))
#
# Base R alone. The same functions as in receive.py, which says what each rule is for, and the same numbers.

RECEIVE_RULES <- c("partial", "noisy", "projected", "full", "simple", "proper")
RECEIVE_GROUPS <- 50
RECEIVE_MISSING <- c("NA", "N/A", "NaN", "nan", "NULL", "null", "None", ".")

# The rule that fits a release, as its certificate names it.
receive_rule <- function(certificate) {
  rule <- certificate$combining$rule
  if (is.null(rule)) {
    stop(
      "the certificate was made before certificates named a rule. Say it: ",
      paste(RECEIVE_RULES, collapse = ", "), "."
    )
  }
  rule
}

# One estimate with its interval from those of several copies: a row for each copy, a column for each term.
receive_combine <- function(estimates, variances, rule, level = 0.95, given = NULL, ratio = 1) {
  if (!rule %in% RECEIVE_RULES) stop("rule must be one of ", paste(RECEIVE_RULES, collapse = ", "), ".")
  if (!(level > 0 && level < 1)) stop("level must lie between 0 and 1; 0.95 is usual.")
  q <- as.matrix(estimates)
  u <- as.matrix(variances)
  c <- if (is.null(given)) u else as.matrix(given)
  m <- nrow(q)
  if (!length(q) || !is.numeric(q)) stop("estimates must be numbers: a row for each copy.")
  if (!all(dim(u) == dim(q), dim(c) == dim(q))) stop("give a variance for each estimate.")
  if (!all(is.finite(q), is.finite(u), is.finite(c), u >= 0)) {
    stop("an estimate or a variance is missing, infinite or negative. Look at each copy's.")
  }
  if (m == 1 && !rule %in% c("simple", "proper")) {
    stop("the rule ", rule, " asks how much copies differ, and there is one. Use several copies.")
  }
  mean <- colMeans(q)
  u <- colMeans(u)
  c <- colMeans(c)
  b <- if (m > 1) apply(q, 2, stats::var) else 0 * mean
  if (rule == "simple") {
    total <- u * (ratio + 1 / m)
    moving <- 0 * b
  } else if (rule == "proper") {
    total <- u * (ratio + (1 + ratio) / m)
    moving <- 0 * b
  } else if (rule == "partial") {
    total <- ratio * u + b / m
    moving <- b / m
  } else if (rule == "noisy") {
    total <- u + pmax(b - 2 * c, 0) + b / m
    moving <- ifelse(b > 2 * c, b + b / m, b / m)
  } else if (rule == "projected") {
    total <- pmax(u - c, 0) + b + b / m
    moving <- b + b / m
  } else {
    total <- b + b / m - u
    moving <- ifelse(total > 0, b + b / m, ratio * u)
    total <- ifelse(total > 0, total, ratio * u)
  }
  df <- ifelse(moving > 0, (m - 1) * (total / moving)^2, Inf)
  error <- sqrt(total)
  reach <- error * stats::qt((1 + level) / 2, df)
  data.frame(
    estimate = mean, std_error = error, df = df, lower = mean - reach, upper = mean + reach, rule = rule
  )
}

# Estimates with intervals from all copies, by the rule that the certificate calls for. `estimator` takes a
# data frame and returns a named vector, or list(estimate = …, variance = …). Where it gives no variance, parts
# of the rows are left out in turn, those of one unit together. Cells that hold a code, no amount, are missing in
# its table (NaN): na.rm = TRUE leaves them out, and receive_read has them.
receive_intervals <- function(folder, estimator, level = 0.95, rule = NULL) {
  public <- receive_read(folder)
  if (is.null(rule)) {
    rule <- receive_rule(public$certificate)
  } else if (!identical(rule, public$certificate$combining$rule)) {
    message("The rule ", rule, " was asked for.")
  }
  facts <- receive_facts(public$certificate, names(public$tables[[1]]))
  found <- receive_estimate(
    lapply(public$tables, .receive_blank, codes = facts$codes), estimator,
    given = rule %in% c("noisy", "projected"),
    clusters = if (is.null(facts$unit)) NULL else public$tables[[1]][[facts$unit]]
  )
  combined <- receive_combine(found$estimates, found$variances, rule, level, found$given)
  if (!is.null(public$certificate$combining)) message(public$certificate$combining$why)
  for (note in facts$notes) message(note)
  cbind(term = found$terms, combined, row.names = NULL)
}

# Which numbers are codes, by column, and in which column rows that belong together have the same.
receive_facts <- function(certificate, columns) {
  codes <- lapply(certificate$codes, function(told) unlist(Filter(is.numeric, told)))
  codes <- Filter(length, codes)
  notes <- vapply(names(codes), function(name) {
    paste0(
      "Cells of '", name, "' with ", paste(codes[[name]], collapse = ", "),
      " hold a code, no amount, and count as missing."
    )
  }, "")
  unit <- certificate$unit
  rows <- if (is.null(unit$rows)) 1 else unit$rows
  named <- !is.null(unit$column) && unit$column %in% columns && !identical(unit$rows, 1)
  if (named) {
    notes <- c(notes, paste0(
      "Rows with the same '", unit$column, "' belong together: standard errors are those of clusters, as far ",
      "as copies have such rows alike."
    ))
  } else if (rows > 1 || isTRUE(unit$together)) {
    notes <- c(notes, paste(
      "Several rows may be one person's or firm's, and copies do not say which: standard errors are those of",
      "independent rows, and may be too small."
    ))
  }
  list(codes = codes, unit = if (named) unit$column else NULL, notes = unname(notes))
}

# What an estimator says of each table, with variances and, if asked for, those given the public columns. Rows
# with the same in `clusters` are left out, or exchanged, together.
receive_estimate <- function(tables, estimator, given, clusters = NULL) {
  split_up <- function(found) if (is.list(found)) found else list(estimate = found, variance = NULL)
  named <- function(estimate) {
    if (!is.null(names(estimate))) return(names(estimate))
    if (length(estimate) == 1) "estimate" else as.character(seq_along(estimate))
  }
  terms <- named(split_up(estimator(tables[[1]]))$estimate)
  values <- function(table) {
    found <- split_up(estimator(table))
    if (
      !length(terms) || anyDuplicated(terms) || !identical(named(found$estimate), terms) ||
        !all(is.finite(found$estimate)) || !length(found$variance) %in% c(0, length(terms))
    ) {
      stop(
        "the estimator must return the same finite numbers by name on each copy, and on parts of its rows, with a ",
        "variance for all of them or for none; gaps, and codes that stand for no amount, are NaN there: leave them ",
        "out, as na.rm = TRUE does."
      )
    }
    found
  }
  m <- length(tables)
  rows <- vapply(tables, nrow, 0L)
  if (any(rows != rows[1]) && (given || !is.null(clusters))) {
    stop("copies have different numbers of rows, and are compared row by row. Select rows in the estimator.")
  }
  q <- u <- c <- matrix(NA_real_, m, length(terms))
  spread <- function(these) rowSums((these - rowMeans(these))^2)
  for (l in seq_len(m)) {
    one <- tables[[l]]
    other <- tables[[l %% m + 1]]
    groups <- if (is.null(clusters)) {
      .receive_groups(rows[l])
    } else {
      .receive_groups(length(unique(clusters)))[match(clusters, unique(clusters))]
    }
    size <- max(groups, 0)
    if (size < 2) stop("there is one row, or one cluster of rows, alone, which shows no variance.")
    found <- values(one)
    q[l, ] <- found$estimate
    if (is.null(found$variance)) {
      without <- vapply(
        seq_len(size), function(g) as.numeric(values(one[groups != g, , drop = FALSE])$estimate), q[l, ]
      )
      u[l, ] <- spread(matrix(without, length(terms))) * (size - 1) / size
    } else {
      u[l, ] <- found$variance
    }
    if (given && m > 1) {
      change <- vapply(seq_len(size), function(g) {
        one[groups == g, ] <- other[groups == g, ]
        as.numeric(values(one)$estimate)
      }, q[l, ])
      c[l, ] <- spread(matrix(change, length(terms))) * size / (size - 1) / 2
    }
  }
  list(terms = terms, estimates = q, variances = u, given = if (given && m > 1) c else NULL)
}

# The copies and the certificate of a public folder, or of the release folder around it. Public columns must be
# the same in all copies, row by row; nothing else is verified.
receive_read <- function(folder, encoding = NULL) {
  public <- .receive_find(folder)
  certificate <- .receive_certificate(public)
  names <- c(unlist(certificate$protected), unlist(certificate$unchanged))
  first <- NULL
  tables <- lapply(certificate$copies, function(copy) {
    path <- file.path(public, copy$file)
    if (!file.exists(path)) stop(copy$file, " is missing. Download the release again.")
    table <- tryCatch(
      switch(copy$format,
        csv = .receive_csv(path, names, encoding),
        parquet = arrow::read_parquet(path),
        arrow = arrow::read_feather(path),
        stata = haven::read_dta(path),
        spss = haven::read_sav(path),
        excel = readxl::read_excel(path)
      ),
      error = function(error) if (inherits(error, "packageNotFoundError")) stop(error) # it says what to install
    )
    if (is.null(table)) {
      stop(
        copy$file, " is no table in the format '", copy$format, "': it was changed or cut short, or needs ",
        "another encoding. Download the release again."
      )
    }
    if (!is.null(certificate$records) && nrow(table) != certificate$records) {
      stop(
        copy$file, " has ", nrow(table), " rows, the certificate says ", certificate$records, ". Download the ",
        "release again."
      )
    }
    if (is.null(first)) first <<- table
    different <- .receive_difference(table, first, unlist(certificate$unchanged))
    if (length(different)) {
      stop(
        copy$file, " has other ", different, " than the first copy: one was changed. Download the release again."
      )
    }
    table
  })
  list(tables = tables, certificate = certificate)
}

# What a copy does not share with the first though all copies do, in words.
.receive_difference <- function(table, first, unchanged) {
  if (!identical(names(table), names(first))) return("columns")
  for (name in intersect(unchanged, names(first))) {
    if (!identical(as.vector(table[[name]]), as.vector(first[[name]]))) {
      return(paste0("public values in '", name, "', or its rows in another order,"))
    }
  }
}

# What is wrong with a public folder; empty if every file is as the certificate says. certificate.md, its text
# for people, has no digest and is not looked at; `hedgerow verify` does that, and more. SHA-256 comes with R from
# version 4.5 on; before, a program of the system computes it, and where there is none the list for
# `sha256sum -c` is printed and sizes alone are compared.
receive_verify <- function(folder) {
  public <- .receive_find(folder)
  certificate <- .receive_certificate(public)
  copies <- certificate$copies
  sizes <- vapply(copies, function(copy) if (is.numeric(copy$bytes)) copy$bytes else -1, 0)
  names(sizes) <- vapply(copies, function(copy) copy$file, "")
  others <- c(plan.yaml = "plan", statistics.json = "statistics", index.html = "page")
  told <- lapply(copies, function(copy) copy$sha256)
  told <- c(told, Filter(length, lapply(others, function(name) certificate[[name]])), certificate$receive)
  digests <- vapply(told, function(digest) if (is.character(digest)) digest else "none", "")
  names(digests)[seq_along(copies)] <- names(sizes)
  there <- list.files(public, all.files = TRUE, no.. = TRUE)
  known <- c(names(digests), "certificate.json", "certificate.md", "certificate.json.sig")
  missing <- setdiff(c(names(digests), "certificate.md"), there)
  added <- setdiff(there, known)
  problems <- c(
    if (length(missing)) paste0(missing, " is missing."),
    if (length(added)) paste0(added, " was added, and is not known to the certificate.")
  )
  present <- sort(intersect(names(digests), there))
  links <- Sys.readlink(file.path(public, present))
  odd <- present[dir.exists(file.path(public, present)) | (!is.na(links) & nzchar(links))]
  if (length(odd)) problems <- c(problems, paste0(odd, " is not a file."))
  present <- setdiff(present, odd)
  resized <- present[present %in% names(sizes)]
  resized <- resized[file.size(file.path(public, resized)) != sizes[resized]]
  if (length(resized)) {
    problems <- c(problems, paste0(resized, " was changed: it has another size than the certificate says."))
  }
  rest <- setdiff(present, resized)
  found <- .receive_sha256(file.path(public, rest))
  if (is.null(found)) {
    message("No SHA-256 in this R: sizes were compared. Save these lines, and run sha256sum -c on them:")
    message(paste(digests[rest], rest, sep = "  ", collapse = "\n"))
  } else {
    changed <- rest[is.na(found) | found != digests[rest]]
    if (length(changed)) {
      problems <- c(problems, paste0(changed, " was changed: its digest is not the certificate's."))
    }
  }
  as.character(problems)
}

.receive_sha256 <- function(paths) {
  if (!length(paths)) return(character(0)) # of which programs would read what is typed
  if (exists("sha256sum", asNamespace("tools"))) return(unname(getExportedValue("tools", "sha256sum")(paths)))
  for (program in c("sha256sum", "shasum")) {
    if (nzchar(Sys.which(program))) {
      options <- if (program == "shasum") c("-a", "256") else NULL
      one <- function(path) { # by itself: what cannot be read has no line, and others keep theirs
        line <- suppressWarnings(system2(program, c(options, "--", shQuote(normalizePath(path))), stdout = TRUE))
        if (length(line) == 1) substr(sub("^\\\\", "", line), 1, 64) else NA_character_
      }
      return(vapply(paths, one, "", USE.NAMES = FALSE))
    }
  }
  NULL
}

.receive_find <- function(folder) {
  for (place in c(folder, file.path(folder, "public"))) {
    if (file.exists(file.path(place, "certificate.json"))) return(place)
  }
  stop("no certificate.json in ", basename(folder), ". Pass the folder that holds the copies.")
}

.receive_certificate <- function(public) {
  certificate <- tryCatch(.receive_json(file.path(public, "certificate.json")), error = function(error) NULL)
  files <- tryCatch(
    vapply(certificate$copies, function(copy) copy$file, ""),
    error = function(error) character(0)
  )
  if (!length(files)) {
    stop("certificate.json lists no copies: it was changed or cut short. Download the release again.")
  }
  if (any(grepl("[/\\\\:]|^[.]+$", files))) {
    stop("certificate.json names a copy outside its folder: hedgerow makes none such.")
  }
  if (!.receive_is_whole(certificate)) {
    stop(
      "certificate.json lacks something that every certificate says: it was changed or cut short. Download the ",
      "release again."
    )
  }
  certificate
}

# Whether there is what this file reads of a certificate, and of the right kind: as receive.py has it.
.receive_is_whole <- function(certificate) {
  words <- function(values) all(vapply(as.list(values), is.character, TRUE))
  items <- function(value) if (length(value) && is.list(value)) !is.null(names(value)) else !length(value)
  combining <- certificate$combining
  unit <- certificate$unit
  codes <- certificate$codes
  if (!is.null(combining) && !is.list(combining)) return(FALSE)
  if (!items(codes) || !items(unit) || !items(certificate$receive)) return(FALSE)
  all(
    is.null(combining) || (is.character(combining$rule) && is.character(combining$why)),
    length(certificate$protected) > 0, words(certificate$protected), is.list(certificate$unchanged),
    words(certificate$unchanged), words(lapply(certificate$copies, function(copy) copy$format)),
    is.null(unit$column) || is.character(unit$column), is.null(unit$rows) || is.numeric(unit$rows),
    vapply(codes, function(told) is.list(told) && !any(vapply(told, is.null, TRUE)), TRUE)
  )
}

# A group for each row, in no relation to their order: as receive.py has them.
.receive_groups <- function(rows) {
  keys <- numeric(rows)
  state <- 20240229
  for (place in seq_len(rows)) {
    state <- (state * 16807) %% 2147483647
    keys[place] <- state
  }
  groups <- integer(rows)
  groups[order(keys)] <- (seq_len(rows) - 1) %% RECEIVE_GROUPS + 1
  groups
}

# The table without the numbers that stand for no amount.
.receive_blank <- function(table, codes) {
  for (name in intersect(names(codes), names(table))) {
    if (is.numeric(table[[name]])) table[[name]][table[[name]] %in% codes[[name]]] <- NaN
  }
  table
}

.receive_csv <- function(path, names, encoding) {
  mark <- readBin(path, "raw", 3)
  wide <- length(mark) > 1 && (all(mark[1:2] == c(0xff, 0xfe)) || all(mark[1:2] == c(0xfe, 0xff)))
  bytes <- readBin(path, "raw", file.size(path))
  if (wide) {
    text <- iconv(list(bytes), if (is.null(encoding)) "UTF-16" else encoding, "UTF-8")
  } else {
    if (length(mark) > 2 && all(mark == c(0xef, 0xbb, 0xbf))) bytes <- bytes[-(1:3)]
    text <- rawToChar(bytes)
    if (is.null(encoding)) encoding <- if (validUTF8(text)) "UTF-8" else "CP1252"
    text <- if (encoding == "UTF-8") `Encoding<-`(text, "UTF-8") else iconv(text, encoding, "UTF-8")
  }
  read <- function(sign, rows) {
    utils::read.table(
      text = text, sep = sign, quote = "\"", header = FALSE, nrows = rows, colClasses = "character",
      na.strings = character(0), comment.char = "", fill = FALSE, blank.lines.skip = TRUE, encoding = "UTF-8",
      allowEscapes = FALSE, strip.white = FALSE
    )
  }
  signs <- c(",", ";", "\t", "|")
  hits <- vapply(signs, function(sign) {
    head <- tryCatch(unlist(read(sign, 1)), error = function(error) character(0))
    length(intersect(head, names))
  }, 0L)
  sign <- signs[which.max(hits)]
  cells <- read(sign, -1)
  header <- unlist(cells[1, ], use.names = FALSE)
  escaped <- !header %in% names & substring(header, 2) %in% names
  header[escaped] <- substring(header[escaped], 2)
  table <- lapply(cells[-1, , drop = FALSE], .receive_convert, sign = sign)
  names(table) <- header
  data.frame(table, check.names = FALSE, stringsAsFactors = FALSE)
}

# Numbers, where each cell is one or missing, with a decimal point or (beside another sign) a comma.
.receive_convert <- function(words, sign) {
  flags <- c("true", "True", "TRUE", "false", "False", "FALSE")
  if (all(words %in% c("", flags)) && any(words != "")) {
    return(ifelse(words == "", NaN, as.numeric(tolower(words) == "true")))
  }
  for (decimal in if (sign == ",") "." else c(".", ",")) {
    absent <- words == "" | words %in% RECEIVE_MISSING
    spelled <- if (decimal == ",") gsub(",", ".", words, fixed = TRUE) else words
    number <- grepl("^([+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|Inf|INF|infinity|Infinity))$", spelled)
    code <- grepl("^([+-]?0[0-9].*|[+][0-9]+|-?[0-9]{16,})$", spelled)
    if (all(absent | (number & !code))) {
      values <- rep(NaN, length(words))
      values[!absent] <- as.numeric(spelled[!absent])
      return(values)
    }
  }
  words
}

# JSON as lists, vectors of length one, and NULL: all that a certificate holds.
.receive_json <- function(path) {
  size <- file.size(path)
  text <- `Encoding<-`(readChar(path, size, useBytes = TRUE), "UTF-8")
  word <- "\"(?:[^\"\\\\]|\\\\.)*\"|-?[0-9][0-9.eE+-]*|true|false|null|[][{},:]"
  tokens <- regmatches(text, gregexpr(word, text, perl = TRUE))[[1]]
  place <- 0
  unescape <- function(token) {
    token <- substr(token, 2, nchar(token) - 1)
    if (!grepl("\\", token, fixed = TRUE)) return(token)
    parts <- regmatches(token, gregexpr("\\\\u[0-9a-fA-F]{4}|\\\\.|[^\\\\]+", token, perl = TRUE))[[1]]
    plain <- c("\\n" = "\n", "\\t" = "\t", "\\r" = "\r", "\\b" = "\b", "\\f" = "\f")
    paste(vapply(parts, function(part) {
      if (grepl("^\\\\u", part)) return(intToUtf8(strtoi(substr(part, 3, 6), 16)))
      if (part %in% names(plain)) return(plain[[part]])
      if (substr(part, 1, 1) == "\\") substring(part, 2) else part
    }, ""), collapse = "")
  }
  value <- function() {
    place <<- place + 1
    token <- tokens[place]
    first <- substr(token, 1, 1)
    if (first == "\"") return(unescape(token))
    if (token == "null") return(NULL)
    if (token %in% c("true", "false")) return(token == "true")
    if (!first %in% c("{", "[")) return(as.numeric(token))
    items <- list()
    while (!tokens[place + 1] %in% c("}", "]")) {
      if (tokens[place + 1] == ",") place <<- place + 1
      if (first == "{") {
        key <- unescape(tokens[place + 1])
        place <<- place + 2
        items[key] <- list(value())
      } else {
        items[length(items) + 1] <- list(value())
      }
    }
    place <<- place + 1
    items
  }
  value()
}
