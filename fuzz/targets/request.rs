//! Heads of HTTP requests, as the console reads them in `src/console/request.rs`.
//!
//! The following must hold:
//! - However the stream is cut, the same request comes out, or a fault. No part of a head is a request of another meaning.
//! - A fault stays a fault, whatever comes behind.
//! - A head is never longer than the maximum; an input that has as many bytes is a request or a fault.
//! - The path begins with a slash. Path, parameters and host that are printed are read as they were.

use crate::request::{Fault, HEAD_MAX, Method, Request, parse};

pub fn check(data: &[u8]) {
    let whole = parse(data);
    match &whole {
        Ok(Some(request)) => {
            assert!(request.path.starts_with('/'), "{request:?}");
            print_and_read(request);
            let longer = [data, b"GET /other HTTP/1.1\r\nHost: other\r\n\r\n"].concat();
            assert_eq!(parse(&longer), whole, "a request behind it");
        }
        Ok(None) => assert!(data.len() < HEAD_MAX),
        Err(_) => {
            let longer = [data, b"\r\n\r\n"].concat();
            assert!(parse(&longer).is_err(), "a fault is final");
        }
    }
    // Each cut of a short input, and some cuts of a long one.
    for end in (0..data.len()).step_by(1 + data.len() / 512) {
        match parse(&data[..end]) {
            Ok(None) => {}
            Ok(Some(request)) => assert_eq!(whole, Ok(Some(request)), "the first {end} bytes"),
            Err(_) => assert!(whole.is_err(), "the first {end} bytes"),
        }
    }
}

fn print_and_read(request: &Request) {
    let encoded = |text: &str, keep: &str| -> String {
        text.bytes()
            .map(|byte| match char::from(byte) {
                kept if kept.is_ascii_alphanumeric() || keep.contains(kept) => kept.to_string(),
                _ => format!("%{byte:02X}"),
            })
            .collect()
    };
    let query: Vec<String> = request
        .query
        .iter()
        .map(|(name, value)| format!("{}={}", encoded(name, ""), encoded(value, "")))
        .collect();
    let method = match request.method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Other => "POST",
    };
    let (version, host) = match &request.host {
        Some(host) => ("1.1", format!("Host: {host}\r\n")),
        None => ("1.0", String::new()),
    };
    let (path, query) = (encoded(&request.path, "/"), query.join("&"));
    let printed = format!("{method} {path}?{query} HTTP/{version}\r\n{host}\r\n");
    match parse(printed.as_bytes()) {
        Ok(Some(read)) => assert_eq!(&read, request, "{printed:?}"),
        // Printed, each byte may take three.
        refused => assert!(refused == Err(Fault::TooLarge) && printed.len() > HEAD_MAX, "{printed:?}: {refused:?}"),
    }
}
