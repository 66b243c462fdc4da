//! The two text formats, and which of them a client wants.

/// A format that Prometheus reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `text/plain; version=0.0.4`
    Prometheus,
    /// `application/openmetrics-text; version=1.0.0`
    OpenMetrics,
}

impl Format {
    /// The format for a client's `Accept` header: OpenMetrics where the client names it and prefers nothing
    /// else.
    #[must_use]
    pub fn negotiate(accept: &str) -> Self {
        let ranges: Vec<Range<'_>> = accept.split(',').filter_map(Range::parse).collect();
        let quality = |is_match: &dyn Fn(&Range<'_>) -> bool| {
            ranges.iter().filter(|range| is_match(range)).map(|range| range.quality).max()
        };
        let openmetrics = quality(&|range| range.is_openmetrics()).unwrap_or(0);
        // The most specific range decides (RFC 9110, 12.5.1).
        let text = quality(&|range| range.is_text())
            .or_else(|| quality(&|range| range.kind == "text/*"))
            .or_else(|| quality(&|range| range.kind == "*/*"));
        if openmetrics > 0 && openmetrics >= text.unwrap_or(0) { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// The value of the header `Content-Type`.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// A media range of an `Accept` header (RFC 9110, 12.5.1).
struct Range<'a> {
    kind: &'a str,
    version: Option<&'a str>,
    /// The quality (`q`) in thousandths.
    quality: u16,
}

impl<'a> Range<'a> {
    /// `None` where it has no quality that is one.
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let mut range = Self { kind: parts.next()?, version: None, quality: 1000 };
        for parameter in parts {
            let Some((name, value)) = parameter.split_once('=') else { continue };
            let (name, value) = (name.trim(), value.trim().trim_matches('"'));
            if name.eq_ignore_ascii_case("version") {
                range.version = Some(value);
            } else if name.eq_ignore_ascii_case("q") {
                range.quality = thousandths(value)?;
            }
        }
        Some(range)
    }

    fn is_openmetrics(&self) -> bool {
        self.kind.eq_ignore_ascii_case("application/openmetrics-text")
            && self.version.is_none_or(|version| version == "1.0.0")
    }

    fn is_text(&self) -> bool {
        self.kind.eq_ignore_ascii_case("text/plain") && self.version.is_none_or(|version| version == "0.0.4")
    }
}

/// A quality: 0 or 1 with at most three decimals.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 3 || !decimals.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let decimals: u16 = format!("{decimals:0<3}").parse().ok()?;
    match whole {
        "0" => Some(decimals),
        "1" => (decimals == 0).then_some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Format::{self, OpenMetrics, Prometheus};

    #[test]
    fn the_format_is_what_the_client_prefers_and_openmetrics_only_where_it_names_it() {
        // Prometheus 2.42 and 3.0 as they send it (scrape/scrape.go).
        let prometheus_2 = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;\
                            q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        let prometheus_3 = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                            application/openmetrics-text;version=0.0.1;q=0.4,\
                            text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        for (accept, expected) in [
            (prometheus_2, OpenMetrics),
            (prometheus_3, OpenMetrics),
            ("", Prometheus),
            ("*/*", Prometheus),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Prometheus),
            ("application/*", Prometheus),
            ("text/plain", Prometheus),
            ("application/openmetrics-text", OpenMetrics),
            ("Application/OpenMetrics-Text; Version=\"1.0.0\"; Q=1", OpenMetrics),
            ("application/openmetrics-text;version=0.0.1", Prometheus),
            ("application/openmetrics-text;version=2.0.0,text/plain;q=0.1", Prometheus),
            ("application/openmetrics-text;q=0.3,text/plain;version=0.0.4;q=0.5", Prometheus),
            ("text/plain;q=0.5 , application/openmetrics-text ; version=1.0.0 ; q=0.6", OpenMetrics),
            ("application/openmetrics-text;q=0", Prometheus),
            ("application/openmetrics-text;q=many,text/plain", Prometheus),
            ("application/openmetrics-text;q=0.5,text/plain;q=0.5", OpenMetrics),
            ("application/openmetrics-text;q=0.5,*/*", Prometheus),
            ("application/openmetrics-text;q=0.5,text/plain;q=0.2,*/*", OpenMetrics),
            (";;,=;q", Prometheus),
        ] {
            assert_eq!(Format::negotiate(accept), expected, "{accept:?}");
        }
    }
}
