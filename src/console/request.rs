//! Reads the head of an HTTP request. Knows nothing of the engine, so that the fuzzer can compile it by itself.

/// The longest head, in bytes, with the empty line behind it.
pub(crate) const HEAD_MAX: usize = 8 * 1024;

/// The most header lines.
const HEADERS_MAX: usize = 64;

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub method: Method,
    /// Decoded, and beginning with a slash.
    pub path: String,
    /// The parameters, decoded, in their order.
    pub query: Vec<(String, String)>,
    /// The name of the host that the client means, without the port.
    pub host: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Other,
}

/// The reason why a request cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No HTTP.
    Malformed,
    /// Neither HTTP/1.0 nor HTTP/1.1.
    Version,
    /// The head is longer than [`HEAD_MAX`], or has more lines than [`HEADERS_MAX`].
    TooLarge,
}

impl Request {
    /// Returns a parameter, the last of its name.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Reads the head at the front of `input`; `None` if more of it must come.
pub(crate) fn parse(input: &[u8]) -> Result<Option<Request>, Fault> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut headers);
    let status = head.parse(input).map_err(|error| match error {
        httparse::Error::Version => Fault::Version,
        httparse::Error::TooManyHeaders => Fault::TooLarge,
        _ => Fault::Malformed,
    })?;
    match status {
        httparse::Status::Complete(length) if length <= HEAD_MAX => {}
        httparse::Status::Partial if input.len() < HEAD_MAX => return Ok(None),
        _ => return Err(Fault::TooLarge),
    }
    let method = match head.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        _ => Method::Other,
    };
    let host = host(&head)?;
    let target = origin(head.path.unwrap_or_default()).ok_or(Fault::Malformed)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = decoded(path, false).ok_or(Fault::Malformed)?;
    let query = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decoded(name, true)?, decoded(value, true)?))
    });
    let query = query.collect::<Option<Vec<_>>>().ok_or(Fault::Malformed)?;
    Ok(Some(Request { method, path, query, host }))
}

/// Returns the host. A request by HTTP/1.1 names exactly one.
fn host(head: &httparse::Request<'_, '_>) -> Result<Option<String>, Fault> {
    let mut hosts = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
    let (first, second) = (hosts.next(), hosts.next());
    if second.is_some() || (first.is_none() && head.version == Some(1)) {
        return Err(Fault::Malformed);
    }
    let Some(first) = first else { return Ok(None) };
    let host = std::str::from_utf8(first.value).map_err(|_| Fault::Malformed)?.trim();
    // An address of IPv6 stands in brackets, and has colons of its own.
    let end = match host.find(']') {
        Some(bracket) => bracket + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    Ok(Some(host[..end].to_ascii_lowercase()))
}

/// Returns the target from its slash on, without a scheme and a host before it.
fn origin(target: &str) -> Option<&str> {
    if target.starts_with('/') {
        return Some(target.split('#').next().unwrap_or(target));
    }
    let behind = target.split_once("://")?.1;
    match behind.find(['/', '?', '#']) {
        Some(at) if behind[at..].starts_with('/') => origin(&behind[at..]),
        // `http://host?query` and `http://host` mean the root.
        _ => Some("/"),
    }
}

/// Replaces each `%41` by the byte that it stands for, and in a query each `+` by a space. `None` if that is no text.
fn decoded(text: &str, plus_is_space: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(target: &str) -> Result<Option<Request>, Fault> {
        parse(format!("GET {target} HTTP/1.1\r\nHost: localhost:9464\r\nAccept: */*\r\n\r\n").as_bytes())
    }

    #[test]
    fn path_and_parameters_are_decoded() {
        let read = request("/snap%73hot?path=/user/%2A%2a&limit=5&a+b&limit=6").unwrap().unwrap();
        assert_eq!((read.method, read.path.as_str()), (Method::Get, "/snapshot"));
        assert_eq!(read.parameter("path"), Some("/user/**"));
        assert_eq!((read.parameter("limit"), read.parameter("a b")), (Some("6"), Some("")));
        assert_eq!((read.parameter("order"), read.host.as_deref()), (None, Some("localhost")));
    }

    #[test]
    fn a_target_may_have_scheme_and_host() {
        for (target, path) in
            [("http://a/metrics?x", "/metrics"), ("http://a", "/"), ("http://a?b/c", "/"), ("/a#b", "/a")]
        {
            assert_eq!(request(target).unwrap().unwrap().path, path, "{target}");
        }
        assert_eq!(request("*"), Err(Fault::Malformed));
    }

    #[test]
    fn hosts_lose_their_ports() {
        let host = |host: &str| {
            let head = format!("GET / HTTP/1.1\r\nhost: {host}\r\n\r\n");
            parse(head.as_bytes()).unwrap().unwrap().host.unwrap()
        };
        assert_eq!((host("LocalHost"), host("[::1]:80"), host("127.0.0.1:80")).0, "localhost");
        assert_eq!(host("[::1]:80"), "[::1]");
        assert_eq!(host("127.0.0.1:80"), "127.0.0.1");
    }

    #[test]
    fn faults_are_told_apart() {
        let head = |text: &str| parse(text.as_bytes());
        assert_eq!(head("GET /"), Ok(None));
        assert_eq!(head("GET / HTTP/1.1\r\n\r\n"), Err(Fault::Malformed), "no host");
        assert_eq!(head("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), Err(Fault::Malformed));
        assert!(head("GET / HTTP/1.0\r\n\r\n").unwrap().is_some_and(|read| read.host.is_none()));
        assert_eq!(head("GET / HTTP/2.0\r\n\r\n"), Err(Fault::Version));
        assert_eq!(head("\x16\x03\x01\x02"), Err(Fault::Malformed));
        assert_eq!(request("/%zz"), Err(Fault::Malformed));
        assert_eq!(request("/%ff"), Err(Fault::Malformed));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEADERS_MAX + 1));
        assert_eq!(head(&many), Err(Fault::TooLarge));
        let long = format!("GET / HTTP/1.1\r\na: {}", "b".repeat(HEAD_MAX));
        assert_eq!(head(&long), Err(Fault::TooLarge));
        assert_eq!(head(&long[..HEAD_MAX - 1]), Ok(None));
        let post = head("POST / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap().unwrap();
        assert_eq!(post.method, Method::Other);
    }
}
