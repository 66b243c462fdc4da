/// A removed value that has more lines, and how its end is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// PEM, to its END line.
    Pem,
    /// To the line that has this: the closing quote.
    Quoted(&'static str),
    /// Until as many brackets are closed as were opened.
    Bracketed(usize),
    /// The lines that are indented deeper than the key, and a YAML list at its own depth.
    Indented(usize),
    /// As long as lines end in a backslash.
    Continued,
}

/// Where a line stands to the value.
pub(super) enum Next {
    /// Part of it, and more follow.
    Inside(Value),
    /// The last part of it.
    Last,
    /// No part of it.
    Beyond,
}

impl Value {
    /// What follows of a value whose first line, after its key, is `value`.
    pub(super) fn beginning(line: &str, value: &str) -> Option<Self> {
        let value = value.trim();
        if value.contains("-----BEGIN ") && !value.contains("-----END ") {
            return Some(Self::Pem);
        }
        for quote in ["\"\"\"", "'''"] {
            if value.matches(quote).count() % 2 == 1 {
                return Some(Self::Quoted(quote));
            }
        }
        for quote in ["\"", "'"] {
            if value.starts_with(quote) && value.matches(quote).count() % 2 == 1 {
                return Some(Self::Quoted(quote));
            }
        }
        if value.ends_with('\\') {
            return Some(Self::Continued);
        }
        match open_brackets(0, value) {
            0 => {}
            open => return Some(Self::Bracketed(open)),
        }
        let stands_below = value.is_empty() || value.starts_with(['|', '>', '&', '!']);
        stands_below.then(|| Self::Indented(indent(line)))
    }

    pub(super) fn after(self, line: &str) -> Next {
        match self {
            Self::Pem if line.contains("-----END ") => Next::Last,
            Self::Quoted(quote) if line.contains(quote) => Next::Last,
            Self::Pem | Self::Quoted(_) => Next::Inside(self),
            Self::Continued if line.trim_end().ends_with('\\') => Next::Inside(self),
            Self::Continued => Next::Last,
            Self::Bracketed(open) => match open_brackets(open, line) {
                0 => Next::Last,
                open => Next::Inside(Self::Bracketed(open)),
            },
            Self::Indented(depth) => {
                let trimmed = line.trim_start();
                let is_of_list = trimmed.starts_with("- ") && indent(line) == depth;
                if trimmed.is_empty() || indent(line) > depth || is_of_list {
                    Next::Inside(self)
                } else {
                    Next::Beyond
                }
            }
        }
    }
}

fn indent(line: &str) -> usize {
    line.chars().take_while(|c| matches!(c, ' ' | '\t')).count()
}

fn open_brackets(open: usize, line: &str) -> usize {
    line.chars().fold(open, |open, c| match c {
        '[' | '{' => open + 1,
        ']' | '}' => open.saturating_sub(1),
        _ => open,
    })
}
