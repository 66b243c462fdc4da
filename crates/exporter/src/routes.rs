//! Answers each request.

use std::net::IpAddr;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, REFERRER_POLICY, VARY, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use telemetry::exposition::Format;

use crate::page;
use crate::scraper::{Scraper, View, Wanted};
use crate::web_config::{Login, WebConfig};

type Answer = Response<Full<Bytes>>;

const TEXT: &str = "text/plain; charset=utf-8";

const HTML: &str = "text/html; charset=utf-8";

pub(crate) async fn answer(
    scraper: &Scraper,
    web_config: Option<&WebConfig>,
    request: &Request<Incoming>,
    client: IpAddr,
) -> Answer {
    if let Some(config) = web_config {
        match config.admits(header(request.headers(), &AUTHORIZATION), client).await {
            Login::Right => {}
            Login::Wrong => {
                let answer = not_admitted(StatusCode::UNAUTHORIZED, "a user and a password are needed\n");
                let asked = "Basic realm=\"rocworker-exporter\", charset=\"UTF-8\"";
                return with(answer, &WWW_AUTHENTICATE, asked);
            }
            Login::Busy => {
                let problem = "too many later logins of this address wait: try again\n";
                return not_admitted(StatusCode::SERVICE_UNAVAILABLE, problem);
            }
        }
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return with(
            response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n"),
            &ALLOW,
            "GET, HEAD",
        );
    }
    match request.uri().path() {
        "/" => {
            let refresh = refresh(request.uri().query().unwrap_or_default());
            guarded(found(scraper, View::Page { refresh }, request.headers()).await)
        }
        "/metrics" => {
            let format = Format::negotiate(&list(request.headers(), &ACCEPT));
            found(scraper, View::Metrics(format), request.headers()).await
        }
        "/healthz" => response(StatusCode::OK, TEXT, "ok\n"),
        _ => response(StatusCode::NOT_FOUND, TEXT, "there are / (a page), /metrics and /healthz\n"),
    }
}

/// The seconds of `refresh=5`, between one and an hour's; any other value asks for nothing.
fn refresh(query: &str) -> Option<u16> {
    let values = query.split('&').filter_map(|pair| pair.strip_prefix("refresh="));
    values.filter_map(|value| value.parse().ok()).find(|seconds| (1..=3600).contains(seconds))
}

/// Closes the connection too, so that wrong logins hold none that others need.
fn not_admitted(status: StatusCode, problem: &'static str) -> Answer {
    with(response(status, TEXT, problem), &CONNECTION, "close")
}

/// What a scrape has found, as one of its views.
async fn found(scraper: &Scraper, view: View, headers: &HeaderMap) -> Answer {
    let wanted = Wanted { view, gzip: takes_gzip(&list(headers, &ACCEPT_ENCODING)) };
    match scraper.scrape(wanted).await {
        Ok(bytes) => {
            let content_type = match view {
                View::Metrics(format) => format.content_type(),
                View::Page { .. } => HTML,
            };
            let answer = response(StatusCode::OK, content_type, bytes);
            let answer = with(answer, &VARY, "Accept, Accept-Encoding, Authorization");
            if wanted.gzip { with(answer, &CONTENT_ENCODING, "gzip") } else { answer }
        }
        Err(error) => response(StatusCode::SERVICE_UNAVAILABLE, TEXT, error + "\n"),
    }
}

/// Headers for a page that shows untrusted names: no script, no cache, no referrer.
fn guarded(answer: Answer) -> Answer {
    let headers = [
        (CONTENT_SECURITY_POLICY, page::POLICY.as_str()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    headers.into_iter().fold(answer, |answer, (name, value)| with(answer, &name, value))
}

fn header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Several headers of a name are one list (RFC 9110, 5.3).
fn list(headers: &HeaderMap, name: &HeaderName) -> String {
    let values: Vec<&str> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    values.join(",")
}

/// Whether the client accepts gzip (RFC 9110, 12.5.3). A weight that is no number counts as 0.
fn takes_gzip(accepted: &str) -> bool {
    accepted.split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let weight = parts.filter_map(|part| part.split_once('='));
        let mut weight = weight.filter(|(key, _)| key.trim().eq_ignore_ascii_case("q"));
        let weight = weight.next().map_or("1", |(_, weight)| weight.trim());
        name.eq_ignore_ascii_case("gzip") && weight.parse::<f32>().is_ok_and(|weight| weight > 0.0)
    })
}

fn response(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    with(answer, &CONTENT_TYPE, kind)
}

fn with(mut answer: Answer, name: &HeaderName, value: &'static str) -> Answer {
    answer.headers_mut().insert(name, hyper::header::HeaderValue::from_static(value));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_headers_are_one_list() {
        let mut headers = HeaderMap::new();
        assert_eq!(list(&headers, &ACCEPT), "");
        for value in ["text/html", "application/openmetrics-text;version=1.0.0"] {
            headers.append(ACCEPT, hyper::header::HeaderValue::from_static(value));
        }
        assert_eq!(Format::negotiate(&list(&headers, &ACCEPT)), Format::OpenMetrics);
    }

    #[test]
    fn a_page_is_loaded_again_after_one_second_to_an_hour() {
        for (query, expected) in [
            ("refresh=5", Some(5)),
            ("a=b&refresh=3600", Some(3600)),
            ("refresh=0", None),
            ("refresh=3601", None),
            ("refresh=5;url=//x", None),
            ("refresh=", None),
            ("", None),
        ] {
            assert_eq!(refresh(query), expected, "{query}");
        }
    }

    #[test]
    fn gzip_is_sent_to_who_takes_it() {
        for (accepted, expected) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0, br", false),
            ("gzip;q=x", false),
            ("gzip;Q=0", false),
            ("gzip; q = 0", false),
            ("gzip ; Q = 0.5", true),
            ("identity", false),
            ("", false),
        ] {
            assert_eq!(takes_gzip(accepted), expected, "{accepted}");
        }
    }
}
