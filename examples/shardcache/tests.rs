//! The parts together, against replies recorded from a real Redis 7.0.15.

use crate::bytes::Bytes;
use crate::command::{Command, Gather, ServerInfo, Session, Then};
use crate::keyspace::Keyspace;
use crate::resp::{Limits, RequestReader};

/// A server of one connection and a few shards, without actors.
struct Server {
    reader: RequestReader,
    session: Session,
    shards: Vec<Keyspace>,
}

impl Server {
    fn new(shard_count: usize) -> Server {
        Server {
            reader: RequestReader::new(Limits::default()),
            session: Session::new(1, "127.0.0.1:1".to_owned()),
            shards: (0..shard_count).map(|_| Keyspace::new()).collect(),
        }
    }

    /// What goes back for these bytes; `<EOF>` at its end when the connection is closed.
    fn exchange(&mut self, now_ms: u64, bytes: &[u8]) -> Vec<u8> {
        let shard_count = self.shards.len();
        let shard_of = |key: &[u8]| key.iter().map(|&byte| usize::from(byte)).sum::<usize>() % shard_count;
        let mut out = Vec::new();
        self.reader.push(bytes);
        loop {
            let arguments = match self.reader.next_request() {
                Ok(Some(arguments)) => arguments,
                Ok(None) => return out,
                Err(error) => {
                    error.put(&mut out);
                    out.extend_from_slice(b"<EOF>");
                    return out;
                }
            };
            match Command::parse(arguments, now_ms) {
                Err(error) => error.put(&mut out),
                Ok(Command::Local(local)) => {
                    if local.answer(&mut self.session, &ServerInfo::default(), &mut out) == Then::Close {
                        out.extend_from_slice(b"<EOF>");
                        return out;
                    }
                }
                Ok(Command::Key(request)) => {
                    self.shards[shard_of(&request.key)].apply(now_ms, request).put(&mut out);
                }
                Ok(Command::Many(request)) => {
                    let mut gather = Gather::many(&request, usize::MAX);
                    for (shard, part) in request.partition(shard_of).into_iter().rev() {
                        gather.accept(self.shards[shard].apply_many(now_ms, part));
                    }
                    gather.put(&mut out);
                }
                Ok(Command::All(request)) => {
                    let mut gather = Gather::all(&request, shard_count, usize::MAX);
                    self.shards
                        .iter_mut()
                        .for_each(|shard| gather.accept(shard.apply_all(now_ms, &request, usize::MAX)));
                    gather.put(&mut out);
                }
            }
        }
    }
}

/// Undoes `\n`, `\r`, `\t`, `\\` and `\xHH`.
fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'\\' => match bytes.next().expect("something behind the backslash") {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'x' => {
                    let mut digit =
                        || (bytes.next().expect("a digit") as char).to_digit(16).expect("hexadecimal") as u8;
                    digit() << 4 | digit()
                }
                other => other,
            },
            other => other,
        });
    }
    out
}

/// `golden.txt` holds conversations: `= name`, then `> request` and `< reply` by turns. Each conversation
/// starts on an empty server and a new connection. Deadlines in it are so far away, or past, that the
/// moment of the recording does not show.
#[test]
fn replies_are_those_of_redis() {
    let now_ms = 1_800_000_000_000;
    for shard_count in [1, 5] {
        let mut server = Server::new(shard_count);
        let (mut name, mut request) = ("", "");
        let mut compared = 0;
        for line in include_str!("golden.txt").lines() {
            match line.split_at_checked(2) {
                Some(("= ", conversation)) => {
                    name = conversation;
                    server = Server::new(shard_count);
                }
                Some(("> ", bytes)) => request = bytes,
                Some(("< ", reply)) => {
                    let got = server.exchange(now_ms, &unescape(request));
                    assert_eq!(
                        got.escape_ascii().to_string(),
                        unescape(reply).escape_ascii().to_string(),
                        "{name}: reply to {request}"
                    );
                    compared += 1;
                }
                _ => assert!(line.is_empty() || line.starts_with('#'), "a line of golden.txt: {line}"),
            }
        }
        assert!(compared > 150, "the table was read: {compared}");
    }
}

#[test]
fn hello_and_client_commands() {
    let mut server = Server::new(1);
    let hello = server.exchange(1, b"HELLO 2 SETNAME me\r\n");
    assert!(hello.starts_with(b"*14\r\n$6\r\nserver\r\n"), "{}", hello.escape_ascii());
    assert_eq!(server.exchange(1, b"CLIENT GETNAME\r\nCLIENT ID\r\n"), b"$2\r\nme\r\n:1\r\n");
    assert_eq!(server.exchange(1, b"CLIENT SETINFO LIB-NAME x\r\n"), b"+OK\r\n");
    assert_eq!(server.exchange(1, b"RESET\r\nCLIENT GETNAME\r\n"), b"+RESET\r\n$-1\r\n");
    assert_eq!(server.exchange(1, b"HELLO 3\r\n"), b"-NOPROTO unsupported protocol version\r\n");
    assert_eq!(server.exchange(1, b"SELECT 1\r\n"), b"-ERR DB index is out of range\r\n");
    let list = server.exchange(1, b"CLIENT LIST\r\n");
    assert!(String::from_utf8(list).unwrap().contains("id=1 addr=127.0.0.1:1 name= db=0"));
}

#[test]
fn what_clients_probe_is_well_formed() {
    let mut server = Server::new(2);
    for request in ["COMMAND", "COMMAND LIST", "INFO", "INFO server keyspace", "CONFIG GET *", "CLIENT INFO"]
    {
        let reply = server.exchange(1, format!("{request}\r\n").as_bytes());
        assert_eq!(reply_len(&reply), Some(reply.len()), "{request}: {}", reply.escape_ascii());
    }
    assert_eq!(
        server.exchange(1, b"CONFIG GET SAVE append*\r\n"),
        b"*4\r\n$10\r\nappendonly\r\n$2\r\nno\r\n$4\r\nsave\r\n$0\r\n\r\n"
    );
    assert!(server.exchange(1, b"INFO\r\n").windows(9).any(|window| window == b"# Server\r"));
}

/// The length of the reply that `bytes` begin with.
fn reply_len(bytes: &[u8]) -> Option<usize> {
    let line_end = bytes.windows(2).position(|pair| pair == b"\r\n")? + 2;
    let number = || std::str::from_utf8(&bytes[1..line_end - 2]).ok()?.parse::<i64>().ok();
    match bytes[0] {
        b'$' => Some(number().filter(|&len| len >= 0).map_or(line_end, |len| line_end + len as usize + 2)),
        b'*' => (0..number()?).try_fold(line_end, |at, _| Some(at + reply_len(&bytes[at..])?)),
        _ => Some(line_end),
    }
}

/// Times advance by hand: expiry through the whole path.
#[test]
fn deadlines_count_from_the_request() {
    let mut server = Server::new(3);
    assert_eq!(server.exchange(1000, b"SET k v EX 2\r\nMGET k x\r\n"), b"+OK\r\n*2\r\n$1\r\nv\r\n$-1\r\n");
    assert_eq!(server.exchange(2999, b"PTTL k\r\nDBSIZE\r\n"), b":1\r\n:1\r\n");
    assert_eq!(server.exchange(3000, b"DBSIZE\r\nMGET k\r\nDEL k x\r\n"), b":0\r\n*1\r\n$-1\r\n:0\r\n");
}

#[test]
fn large_values_pass_whole() {
    let mut server = Server::new(3);
    let value = Bytes::copy_from(&b"\x00\r\n$7*"[..].repeat(100_000));
    let set = [&b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$600000\r\n"[..], &value, b"\r\n"].concat();
    let mut got = Vec::new();
    for piece in set.chunks(1400) {
        got.extend(server.exchange(1, piece));
    }
    assert_eq!(got, b"+OK\r\n");
    assert_eq!(server.exchange(1, b"GET k\r\n"), [&b"$600000\r\n"[..], &value, b"\r\n"].concat());
}
