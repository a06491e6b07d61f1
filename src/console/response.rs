//! An HTTP response.

use std::fmt::Write;

/// A response: its status, its headers, and its page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    pub status: Status,
    pub content_type: &'static str,
    pub page: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    BadRequest,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    Conflict,
    Misdirected,
    HeadTooLarge,
    ServiceUnavailable,
    VersionNotSupported,
}

const PLAIN: &str = "text/plain; charset=utf-8";

impl Status {
    fn line(self) -> &'static str {
        match self {
            Status::Ok => "200 OK",
            Status::BadRequest => "400 Bad Request",
            Status::NotFound => "404 Not Found",
            Status::MethodNotAllowed => "405 Method Not Allowed",
            Status::RequestTimeout => "408 Request Timeout",
            Status::Conflict => "409 Conflict",
            Status::Misdirected => "421 Misdirected Request",
            Status::HeadTooLarge => "431 Request Header Fields Too Large",
            Status::ServiceUnavailable => "503 Service Unavailable",
            Status::VersionNotSupported => "505 HTTP Version Not Supported",
        }
    }
}

impl Response {
    pub(crate) fn ok(content_type: &'static str, page: String) -> Self {
        Self { status: Status::Ok, content_type, page }
    }

    /// A page of plain text.
    pub(crate) fn plain(status: Status, page: impl Into<String>) -> Self {
        Self { status, content_type: PLAIN, page: page.into() }
    }

    /// Writes the response to `out`. The connection ends behind it. The response to a `HEAD` has no page.
    pub(crate) fn write(&self, has_page: bool, out: &mut Vec<u8>) {
        let mut head = String::with_capacity(256);
        let Self { status, content_type, page } = self;
        let _ = write!(
            head,
            "HTTP/1.1 {}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nConnection: close\r\n",
            status.line(),
            page.len(),
        );
        if *status == Status::MethodNotAllowed {
            head.push_str("Allow: GET, HEAD\r\n");
        }
        head.push_str("\r\n");
        out.extend_from_slice(head.as_bytes());
        if has_page {
            out.extend_from_slice(page.as_bytes());
        }
    }
}
