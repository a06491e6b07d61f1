//! What a request asks for, who has to do it, and how the answers of several shards become one.
//!
//! [`Command::parse`] turns arguments into one of four kinds:
//!
//! | kind | commands | answered by |
//! |---|---|---|
//! | [`Local`] | PING ECHO SELECT INFO COMMAND CONFIG CLIENT HELLO QUIT RESET | the connection itself |
//! | [`KeyRequest`] | GET SET INCR …, DEL and EXISTS of one key | the shard that owns the key |
//! | [`ManyRequest`] | MGET MSET, DEL UNLINK EXISTS of several keys | each shard that owns some of them |
//! | [`AllRequest`] | DBSIZE KEYS FLUSHALL FLUSHDB | every shard |
//!
//! [`ManyRequest::partition`] cuts a request by shard, and [`RouteeReplyCollector`] puts the parts' answers together. It
//! counts keys and not parts, so that a shard that receives keys which have moved meanwhile may cut its
//! part again and hand those on: the answer is complete when every key is answered for, by whomever.
//! MSET, DEL and the others are atomic for each part, not for the whole.
//!
//! Times become absolute here, by the clock of the connection (`now_ms`), as in Redis: what waits in a
//! shard's mailbox does not live longer for it.
//!
//! # As Redis 7.0 does it
//! Arity, syntax and range errors with their texts and in their order, at most 128 bytes of a foreign
//! name in them, cut at a zero byte.
//!
//! # Not as Redis 7.0 does it
//! - One database; SELECT of any other fails as it does there beyond the last one.
//! - RESP2 only: HELLO 3 is refused with `NOPROTO`, on which clients fall back.
//! - No password: HELLO … AUTH passes for the user `default`, and AUTH does not exist.
//! - CONFIG GET knows a few parameters, CONFIG SET refuses them all. COMMAND DOCS is empty.
//! - CLIENT LIST shows the asking connection only, CLIENT SETINFO (7.2) is accepted and ignored.

use std::num::NonZeroU64;

use crate::bytes::Bytes;
use crate::glob::Glob;
use crate::keyspace::PartReply;
use crate::resp::{
    Arguments, bulk_len, parse_integer, put_array_header, put_bulk, put_error, put_integer, put_null,
    put_simple, put_too_long,
};

/// The version whose behaviour is copied, told to clients that ask.
const REDIS_VERSION: &str = "7.0.15";

/// The most bytes of a client's own text that an error quotes.
const QUOTED_MAX: usize = 128;

const INVALID_CLIENT_NAME: &str = "ERR Client names cannot contain spaces, newlines or special characters.";

/// A request that is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Local(Local),
    Key(KeyRequest),
    Many(ManyRequest),
    All(AllRequest),
}

/// What the connection answers itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Local {
    Ping(Option<Bytes>),
    Echo(Bytes),
    /// SELECT 0.
    Select,
    /// The sections asked for; none means all.
    Info(Vec<Bytes>),
    CommandList,
    CommandCount,
    /// The commands asked about; none means all.
    CommandInfo(Vec<Bytes>),
    CommandDocs,
    /// Names or patterns.
    ConfigGet(Vec<Bytes>),
    ClientSetName(Bytes),
    ClientGetName,
    ClientId,
    /// CLIENT LIST and CLIENT INFO.
    ClientList,
    ClientSetInfo,
    Hello {
        name: Option<Bytes>,
    },
    Quit,
    Reset,
}

/// An operation on one key, for the shard that owns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRequest {
    pub key: Bytes,
    pub operation: Operation,
}

// One cache line, so that it travels inline in a message.
const _: () = assert!(size_of::<KeyRequest>() <= 64);

/// What to do with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    Get,
    /// SET, SETEX, PSETEX and GETSET.
    Set {
        value: Bytes,
        options: SetOptions,
    },
    /// SETNX, which answers by a number where SET … NX does not.
    SetIfAbsent {
        value: Bytes,
    },
    Delete,
    Exists,
    /// A deadline that has passed deletes the key.
    Expire {
        deadline_ms: i64,
        condition: ExpireCondition,
    },
    TimeToLive {
        in_seconds: bool,
    },
    Persist,
    /// INCR, DECR, INCRBY and DECRBY.
    Add(i64),
    Append {
        tail: Bytes,
    },
    Length,
    Type,
}

/// The options of SET.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SetOptions {
    pub deadline_ms: Option<NonZeroU64>,
    pub condition: SetCondition,
    /// Leave the deadline as it is.
    pub keep_ttl: bool,
    /// Answer with the old value.
    pub get: bool,
}

/// When SET stores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SetCondition {
    #[default]
    Always,
    IfAbsent,
    IfPresent,
}

/// When EXPIRE sets its deadline: if all that are set hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExpireCondition {
    pub if_none: bool,
    pub if_some: bool,
    pub if_later: bool,
    pub if_earlier: bool,
}

/// A request for several keys, or the part of it for one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManyRequest {
    /// DEL and UNLINK.
    Delete(Vec<Bytes>),
    Exists(Vec<Bytes>),
    /// Each key with its position in the answer.
    Get(Vec<(u32, Bytes)>),
    Set(Vec<(Bytes, Bytes)>),
}

/// A request for every shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllRequest {
    /// DBSIZE.
    Size,
    /// KEYS with this pattern.
    Keys(Bytes),
    /// FLUSHALL and FLUSHDB.
    Clear,
}

/// Puts the answers of several shards together.
#[derive(Debug)]
pub struct Gather {
    /// Keys (or, for an [`AllRequest`], shards) that are not answered for.
    outstanding: usize,
    answer: Answer,
    /// How long the reply is so far, and may be.
    len: usize,
    len_max: usize,
    failed: bool,
}

#[derive(Debug)]
enum Answer {
    Number(usize),
    Values(Vec<Option<Bytes>>),
    Keys(Vec<Bytes>),
    Ok,
    /// The reply would be longer than it may be; what was gathered is gone.
    TooLong,
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandError {
    /// The command, or `container|subcommand`.
    WrongArity(&'static str),
    /// The name and the arguments, as Redis quotes them.
    UnknownCommand {
        name: Vec<u8>,
        arguments: Vec<u8>,
    },
    UnknownSubcommand {
        container: &'static str,
        name: Vec<u8>,
    },
    UnknownConfig(Vec<u8>),
    ImmutableConfig(Vec<u8>),
    UnsupportedExpireOption(Vec<u8>),
    HelloSyntax(Vec<u8>),
    InvalidExpireTime(&'static str),
    /// All that needs no detail, in full.
    Fixed(&'static str),
}

const SYNTAX: CommandError = CommandError::Fixed("ERR syntax error");
const NOT_AN_INTEGER: CommandError = CommandError::Fixed("ERR value is not an integer or out of range");

/// What a connection knows of itself.
#[derive(Debug, Clone)]
pub struct Session {
    pub id: u64,
    /// `address:port`.
    pub peer: String,
    /// Empty while not set.
    pub name: Bytes,
}

/// What INFO tells of the server.
#[derive(Debug, Clone, Default)]
pub struct ServerInfo {
    pub process_id: u32,
    pub tcp_port: u16,
    pub uptime_seconds: u64,
    pub connected_clients: usize,
    pub commands_processed: u64,
    pub shard_count: usize,
    pub key_count: usize,
}

/// What becomes of the connection after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Then {
    Continue,
    /// Close once everything up to this reply is sent.
    Close,
}

/// One command: as COMMAND describes it, and how its arguments are read.
struct Spec {
    name: &'static str,
    /// The number of arguments, the name included; negative for at least that many.
    arity: i64,
    flags: &'static [&'static str],
    /// First key, last key, step.
    keys: (i64, i64, i64),
    parse: Parse,
}

type Parse = fn(Arguments<'_>, u64) -> Result<Command, CommandError>;

const fn spec(
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    keys: (i64, i64, i64),
    parse: Parse,
) -> Spec {
    Spec { name, arity, flags, keys, parse }
}

const ONE: (i64, i64, i64) = (1, 1, 1);
const NO: (i64, i64, i64) = (0, 0, 0);
const READ: &[&str] = &["readonly", "fast"];
const WRITE: &[&str] = &["write", "fast"];
const GROW: &[&str] = &["write", "denyoom", "fast"];
const STORE: &[&str] = &["write", "denyoom"];
const STALE: &[&str] = &["loading", "stale"];
const STALE_FAST: &[&str] = &["loading", "stale", "fast"];
const ALWAYS: &[&str] = &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"];

/// All commands. A look-up goes through them in this order, so the frequent ones stand first.
const COMMANDS: &[Spec] = &[
    spec("get", 2, READ, ONE, |a, _| key(a, Operation::Get)),
    spec("set", -3, STORE, ONE, parse_set),
    spec("incr", 2, GROW, ONE, |a, _| key(a, Operation::Add(1))),
    spec("mget", -2, READ, (1, -1, 1), |a, _| {
        // More than u32::MAX arguments are beyond any limit of the reader.
        Ok(Command::Many(ManyRequest::Get((0..).zip(copies(a, 1)).collect())))
    }),
    spec("mset", -3, STORE, (1, -1, 2), parse_mset),
    spec("ping", -1, &["fast"], NO, |a, _| match a.len() {
        1 => Ok(Command::Local(Local::Ping(None))),
        2 => Ok(Command::Local(Local::Ping(Some(Bytes::copy_from(a.at(1)))))),
        _ => Err(CommandError::WrongArity("ping")),
    }),
    spec("del", -2, &["write"], (1, -1, 1), parse_del),
    spec("exists", -2, READ, (1, -1, 1), |a, _| match a.len() {
        2 => key(a, Operation::Exists),
        _ => Ok(Command::Many(ManyRequest::Exists(copies(a, 1).collect()))),
    }),
    spec("expire", -3, WRITE, ONE, |a, now| parse_expire(a, now, "expire", 1000)),
    spec("pexpire", -3, WRITE, ONE, |a, now| parse_expire(a, now, "pexpire", 1)),
    spec("ttl", 2, READ, ONE, |a, _| key(a, Operation::TimeToLive { in_seconds: true })),
    spec("pttl", 2, READ, ONE, |a, _| key(a, Operation::TimeToLive { in_seconds: false })),
    spec("persist", 2, WRITE, ONE, |a, _| key(a, Operation::Persist)),
    spec("setnx", 3, GROW, ONE, |a, _| key(a, Operation::SetIfAbsent { value: Bytes::copy_from(a.at(2)) })),
    spec("setex", 4, STORE, ONE, |a, now| parse_setex(a, now, "setex", 1000)),
    spec("psetex", 4, STORE, ONE, |a, now| parse_setex(a, now, "psetex", 1)),
    spec("getset", 3, GROW, ONE, |a, _| {
        let options = SetOptions { get: true, ..SetOptions::default() };
        key(a, Operation::Set { value: Bytes::copy_from(a.at(2)), options })
    }),
    spec("decr", 2, GROW, ONE, |a, _| key(a, Operation::Add(-1))),
    spec("incrby", 3, GROW, ONE, |a, _| key(a, Operation::Add(integer(a.at(2))?))),
    spec("decrby", 3, GROW, ONE, |a, _| {
        let amount = integer(a.at(2))?.checked_neg();
        key(a, Operation::Add(amount.ok_or(CommandError::Fixed("ERR decrement would overflow"))?))
    }),
    spec("append", 3, GROW, ONE, |a, _| key(a, Operation::Append { tail: Bytes::copy_from(a.at(2)) })),
    spec("strlen", 2, READ, ONE, |a, _| key(a, Operation::Length)),
    spec("type", 2, READ, ONE, |a, _| key(a, Operation::Type)),
    spec("unlink", -2, WRITE, (1, -1, 1), parse_del),
    spec("dbsize", 1, READ, NO, |_, _| Ok(Command::All(AllRequest::Size))),
    spec("keys", 2, &["readonly"], NO, |a, _| Ok(Command::All(AllRequest::Keys(Bytes::copy_from(a.at(1)))))),
    spec("flushall", -1, &["write"], NO, parse_flush),
    spec("flushdb", -1, &["write"], NO, parse_flush),
    spec("echo", 2, STALE_FAST, NO, |a, _| Ok(Command::Local(Local::Echo(Bytes::copy_from(a.at(1)))))),
    spec("select", 2, STALE_FAST, NO, parse_select),
    spec("info", -1, STALE, NO, |a, _| Ok(Command::Local(Local::Info(copies(a, 1).collect())))),
    spec("command", -1, STALE, NO, parse_command),
    spec("config", -2, &[], NO, parse_config),
    spec("client", -2, &[], NO, parse_client),
    spec("hello", -1, ALWAYS, NO, parse_hello),
    spec("quit", -1, ALWAYS, NO, |_, _| Ok(Command::Local(Local::Quit))),
    spec("reset", 1, ALWAYS, NO, |_, _| Ok(Command::Local(Local::Reset))),
];

/// The parameters that CONFIG GET knows, for what clients and redis-benchmark look at.
const CONFIG: &[(&str, &str)] = &[
    ("appendonly", "no"),
    ("databases", "1"),
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("proto-max-bulk-len", "536870912"),
    ("save", ""),
    ("timeout", "0"),
];

impl Command {
    /// Understands a request. `now_ms` is the time since the Unix epoch, for relative deadlines.
    ///
    /// # Errors
    /// [`CommandError`], whose text goes to the client; the connection goes on.
    pub fn parse(arguments: Arguments<'_>, now_ms: u64) -> Result<Command, CommandError> {
        let name = arguments.at(0);
        let Some(spec) = find(name) else { return Err(unknown_command(arguments)) };
        if !fits(spec.arity, arguments.len()) {
            return Err(CommandError::WrongArity(spec.name));
        }
        (spec.parse)(arguments, now_ms)
    }
}

fn find(name: &[u8]) -> Option<&'static Spec> {
    COMMANDS.iter().find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name))
}

fn fits(arity: i64, len: usize) -> bool {
    if arity < 0 { len as i64 >= -arity } else { len as i64 == arity }
}

fn key(arguments: Arguments<'_>, operation: Operation) -> Result<Command, CommandError> {
    Ok(Command::Key(KeyRequest { key: Bytes::copy_from(arguments.at(1)), operation }))
}

fn copies<'a>(arguments: Arguments<'a>, first: usize) -> impl Iterator<Item = Bytes> + use<'a> {
    arguments.from(first).map(Bytes::copy_from)
}

fn integer(text: &[u8]) -> Result<i64, CommandError> {
    parse_integer(text).ok_or(NOT_AN_INTEGER)
}

fn parse_del(a: Arguments<'_>, _now_ms: u64) -> Result<Command, CommandError> {
    match a.len() {
        2 => key(a, Operation::Delete),
        _ => Ok(Command::Many(ManyRequest::Delete(copies(a, 1).collect()))),
    }
}

fn parse_mset(a: Arguments<'_>, _now_ms: u64) -> Result<Command, CommandError> {
    if a.len() % 2 == 0 {
        return Err(CommandError::WrongArity("mset"));
    }
    let pairs = a.from(1).step_by(2).zip(a.from(2).step_by(2));
    let copied = pairs.map(|(key, value)| (Bytes::copy_from(key), Bytes::copy_from(value)));
    Ok(Command::Many(ManyRequest::Set(copied.collect())))
}

/// How SET names a deadline.
#[derive(Clone, Copy, PartialEq)]
struct Deadline {
    unit_ms: i64,
    absolute: bool,
}

fn parse_set(a: Arguments<'_>, now_ms: u64) -> Result<Command, CommandError> {
    let mut options = SetOptions::default();
    let mut deadline: Option<(Deadline, &[u8])> = None;
    let mut rest = a.from(3);
    while let Some(option) = rest.next() {
        let is = |name: &str| option.eq_ignore_ascii_case(name.as_bytes());
        let condition = match () {
            () if is("nx") => SetCondition::IfAbsent,
            () if is("xx") => SetCondition::IfPresent,
            () => SetCondition::Always,
        };
        if condition != SetCondition::Always {
            if options.condition != SetCondition::Always && options.condition != condition {
                return Err(SYNTAX);
            }
            options.condition = condition;
        } else if is("get") {
            options.get = true;
        } else if is("keepttl") {
            if deadline.is_some() {
                return Err(SYNTAX);
            }
            options.keep_ttl = true;
        } else {
            let kind = match () {
                () if is("ex") => Deadline { unit_ms: 1000, absolute: false },
                () if is("px") => Deadline { unit_ms: 1, absolute: false },
                () if is("exat") => Deadline { unit_ms: 1000, absolute: true },
                () if is("pxat") => Deadline { unit_ms: 1, absolute: true },
                () => return Err(SYNTAX),
            };
            // The same option may come twice, two different ones may not.
            if options.keep_ttl || deadline.is_some_and(|(earlier, _)| earlier != kind) {
                return Err(SYNTAX);
            }
            deadline = Some((kind, rest.next().ok_or(SYNTAX)?));
        }
    }
    if let Some((kind, text)) = deadline {
        options.deadline_ms = Some(set_deadline(text, kind, now_ms, "set")?);
    }
    key(a, Operation::Set { value: Bytes::copy_from(a.at(2)), options })
}

fn parse_setex(
    a: Arguments<'_>,
    now_ms: u64,
    command: &'static str,
    unit_ms: i64,
) -> Result<Command, CommandError> {
    let deadline_ms = Some(set_deadline(a.at(2), Deadline { unit_ms, absolute: false }, now_ms, command)?);
    let options = SetOptions { deadline_ms, ..SetOptions::default() };
    key(a, Operation::Set { value: Bytes::copy_from(a.at(3)), options })
}

/// A deadline of SET and its kin, which must be given as a positive number.
fn set_deadline(
    text: &[u8],
    kind: Deadline,
    now_ms: u64,
    command: &'static str,
) -> Result<NonZeroU64, CommandError> {
    let number = integer(text)?;
    let base = if kind.absolute { 0 } else { now_ms as i64 };
    Some(number)
        .filter(|&number| number > 0)
        .and_then(|number| number.checked_mul(kind.unit_ms)?.checked_add(base))
        .and_then(|deadline| NonZeroU64::new(deadline as u64))
        .ok_or(CommandError::InvalidExpireTime(command))
}

fn parse_expire(
    a: Arguments<'_>,
    now_ms: u64,
    command: &'static str,
    unit_ms: i64,
) -> Result<Command, CommandError> {
    let mut condition = ExpireCondition::default();
    for option in a.from(3) {
        match &option.to_ascii_lowercase()[..] {
            b"nx" => condition.if_none = true,
            b"xx" => condition.if_some = true,
            b"gt" => condition.if_later = true,
            b"lt" => condition.if_earlier = true,
            _ => return Err(CommandError::UnsupportedExpireOption(quoted(option, usize::MAX))),
        }
    }
    if condition.if_none && (condition.if_some || condition.if_later || condition.if_earlier) {
        let text = "ERR NX and XX, GT or LT options at the same time are not compatible";
        return Err(CommandError::Fixed(text));
    }
    if condition.if_later && condition.if_earlier {
        return Err(CommandError::Fixed("ERR GT and LT options at the same time are not compatible"));
    }
    let deadline_ms = integer(a.at(2))?
        .checked_mul(unit_ms)
        .and_then(|from_now| from_now.checked_add(now_ms as i64))
        .ok_or(CommandError::InvalidExpireTime(command))?;
    key(a, Operation::Expire { deadline_ms, condition })
}

fn parse_flush(a: Arguments<'_>, _now_ms: u64) -> Result<Command, CommandError> {
    let known = |mode: &[u8]| mode.eq_ignore_ascii_case(b"async") || mode.eq_ignore_ascii_case(b"sync");
    if a.len() > 2 || a.from(1).any(|mode| !known(mode)) {
        return Err(SYNTAX);
    }
    Ok(Command::All(AllRequest::Clear))
}

fn parse_select(a: Arguments<'_>, _now_ms: u64) -> Result<Command, CommandError> {
    match integer(a.at(1))? {
        0 => Ok(Command::Local(Local::Select)),
        index if i32::try_from(index).is_ok() => Err(CommandError::Fixed("ERR DB index is out of range")),
        _ => Err(CommandError::Fixed(
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        )),
    }
}

/// The subcommand's name in lower case, if it is one of `known` (name, full name, arity) and its arity
/// fits.
fn subcommand(
    a: Arguments<'_>,
    container: &'static str,
    known: &[(&'static str, &'static str, i64)],
) -> Result<&'static str, CommandError> {
    let given = a.at(1);
    match known.iter().find(|(name, ..)| name.as_bytes().eq_ignore_ascii_case(given)) {
        None => Err(CommandError::UnknownSubcommand { container, name: quoted(given, QUOTED_MAX) }),
        Some(&(_, full, arity)) if !fits(arity, a.len()) => Err(CommandError::WrongArity(full)),
        Some(&(name, ..)) => Ok(name),
    }
}

fn parse_command(a: Arguments<'_>, _now_ms: u64) -> Result<Command, CommandError> {
    if a.len() == 1 {
        return Ok(Command::Local(Local::CommandInfo(Vec::new())));
    }
    let known = [
        ("count", "command|count", 2),
        ("docs", "command|docs", -2),
        ("info", "command|info", -2),
        ("list", "command|list", 2),
    ];
    Ok(Command::Local(match subcommand(a, "COMMAND", &known)? {
        "count" => Local::CommandCount,
        "docs" => Local::CommandDocs,
        "info" => Local::CommandInfo(copies(a, 2).collect()),
        _ => Local::CommandList,
    }))
}

fn parse_config(a: Arguments<'_>, _now_ms: u64) -> Result<Command, CommandError> {
    if subcommand(a, "CONFIG", &[("get", "config|get", -3), ("set", "config|set", -4)])? == "get" {
        return Ok(Command::Local(Local::ConfigGet(copies(a, 2).collect())));
    }
    if a.len() % 2 == 1 {
        return Err(SYNTAX);
    }
    let known = |name: &[u8]| CONFIG.iter().any(|(known, _)| known.as_bytes().eq_ignore_ascii_case(name));
    let name = a.from(2).step_by(2).find(|name| !known(name));
    Err(match name {
        Some(unknown) => CommandError::UnknownConfig(quoted(unknown, usize::MAX)),
        None => CommandError::ImmutableConfig(quoted(a.at(2), usize::MAX)),
    })
}

fn parse_client(a: Arguments<'_>, _now_ms: u64) -> Result<Command, CommandError> {
    let known = [
        ("setname", "client|setname", 3),
        ("getname", "client|getname", 2),
        ("id", "client|id", 2),
        ("info", "client|info", 2),
        ("list", "client|list", -2),
        ("setinfo", "client|setinfo", 4),
    ];
    Ok(Command::Local(match subcommand(a, "CLIENT", &known)? {
        "setname" => Local::ClientSetName(client_name(a.at(2))?),
        "getname" => Local::ClientGetName,
        "id" => Local::ClientId,
        "setinfo" => Local::ClientSetInfo,
        "list" if a.len() != 2 && !(a.len() == 4 && a.at(2).eq_ignore_ascii_case(b"type")) => {
            return Err(SYNTAX);
        }
        _ => Local::ClientList,
    }))
}

fn client_name(name: &[u8]) -> Result<Bytes, CommandError> {
    if name.iter().all(u8::is_ascii_graphic) {
        Ok(Bytes::copy_from(name))
    } else {
        Err(CommandError::Fixed(INVALID_CLIENT_NAME))
    }
}

fn parse_hello(a: Arguments<'_>, _now_ms: u64) -> Result<Command, CommandError> {
    if a.len() > 1 {
        let text = "ERR Protocol version is not an integer or out of range";
        match parse_integer(a.at(1)).ok_or(CommandError::Fixed(text))? {
            2 => {}
            _ => return Err(CommandError::Fixed("NOPROTO unsupported protocol version")),
        }
    }
    let mut name = None;
    let mut rest = a.from(2);
    while let Some(option) = rest.next() {
        if option.eq_ignore_ascii_case(b"auth") && rest.len() >= 2 {
            if rest.next() != Some(b"default") {
                let text = "WRONGPASS invalid username-password pair or user is disabled.";
                return Err(CommandError::Fixed(text));
            }
            rest.next();
        } else if option.eq_ignore_ascii_case(b"setname") && rest.len() >= 1 {
            name = rest.next().map(client_name).transpose()?;
        } else {
            return Err(CommandError::HelloSyntax(quoted(option, usize::MAX)));
        }
    }
    Ok(Command::Local(Local::Hello { name }))
}

/// A client's text as an error quotes it: up to a zero byte, and no more than `max` bytes.
fn quoted(text: &[u8], max: usize) -> Vec<u8> {
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    text[..end.min(max)].to_vec()
}

fn unknown_command(a: Arguments<'_>) -> CommandError {
    let mut arguments = Vec::new();
    for argument in a.from(1) {
        let Some(room) = QUOTED_MAX.checked_sub(arguments.len()).filter(|&room| room > 0) else { break };
        arguments.push(b'\'');
        arguments.extend(quoted(argument, room));
        arguments.extend_from_slice(b"' ");
    }
    CommandError::UnknownCommand { name: quoted(a.at(0), QUOTED_MAX), arguments }
}

impl CommandError {
    /// Appends the error reply, with Redis' text.
    pub fn put(&self, out: &mut Vec<u8>) {
        let text = match self {
            CommandError::WrongArity(command) => {
                format!("ERR wrong number of arguments for '{command}' command").into_bytes()
            }
            CommandError::UnknownCommand { name, arguments } => {
                [b"ERR unknown command '", &name[..], b"', with args beginning with: ", arguments].concat()
            }
            CommandError::UnknownSubcommand { container, name } => {
                [b"ERR unknown subcommand '", &name[..], b"'. Try ", container.as_bytes(), b" HELP."].concat()
            }
            CommandError::UnknownConfig(name) => {
                [b"ERR Unknown option or number of arguments for CONFIG SET - '", &name[..], b"'"].concat()
            }
            CommandError::ImmutableConfig(name) => [
                b"ERR CONFIG SET failed (possibly related to argument '",
                &name[..],
                b"') - can't set immutable config",
            ]
            .concat(),
            CommandError::UnsupportedExpireOption(option) => {
                [b"ERR Unsupported option ", &option[..]].concat()
            }
            CommandError::HelloSyntax(option) => {
                [b"ERR Syntax error in HELLO option '", &option[..], b"'"].concat()
            }
            CommandError::InvalidExpireTime(command) => {
                format!("ERR invalid expire time in '{command}' command").into_bytes()
            }
            CommandError::Fixed(text) => text.as_bytes().to_vec(),
        };
        put_error(out, &text);
    }
}

impl ManyRequest {
    /// How many keys it is about.
    pub fn key_count(&self) -> usize {
        match self {
            ManyRequest::Delete(keys) | ManyRequest::Exists(keys) => keys.len(),
            ManyRequest::Get(keys) => keys.len(),
            ManyRequest::Set(pairs) => pairs.len(),
        }
    }

    /// Some key of it, by which the whole part is routed. A request has at least one key.
    pub fn first_key(&self) -> Option<&Bytes> {
        match self {
            ManyRequest::Delete(keys) | ManyRequest::Exists(keys) => keys.first(),
            ManyRequest::Get(keys) => keys.first().map(|(_, key)| key),
            ManyRequest::Set(pairs) => pairs.first().map(|(key, _)| key),
        }
    }

    /// Cuts the request by the shard of its keys; keys of one shard keep their order. O(keys × shards),
    /// meant for dozens of shards.
    pub fn partition<S: PartialEq>(self, mut shard_of: impl FnMut(&[u8]) -> S) -> Vec<(S, ManyRequest)> {
        fn group<S: PartialEq, T>(items: Vec<T>, mut shard_of: impl FnMut(&T) -> S) -> Vec<(S, Vec<T>)> {
            let mut groups: Vec<(S, Vec<T>)> = Vec::new();
            for item in items {
                let shard = shard_of(&item);
                match groups.iter_mut().find(|(known, _)| *known == shard) {
                    Some((_, group)) => group.push(item),
                    None => groups.push((shard, vec![item])),
                }
            }
            groups
        }
        fn wrap<S, T>(groups: Vec<(S, T)>, part: impl Fn(T) -> ManyRequest) -> Vec<(S, ManyRequest)> {
            groups.into_iter().map(|(shard, group)| (shard, part(group))).collect()
        }
        match self {
            ManyRequest::Delete(keys) => wrap(group(keys, |key| shard_of(key)), ManyRequest::Delete),
            ManyRequest::Exists(keys) => wrap(group(keys, |key| shard_of(key)), ManyRequest::Exists),
            ManyRequest::Get(keys) => wrap(group(keys, |(_, key)| shard_of(key)), ManyRequest::Get),
            ManyRequest::Set(pairs) => wrap(group(pairs, |(key, _)| shard_of(key)), ManyRequest::Set),
        }
    }
}

/// How long the header of an array may be, the null string is, and an error may be.
const HEADER_LEN: usize = 32;
const NULL_LEN: usize = 5;
const ERROR_LEN: usize = 256;

impl Gather {
    /// Waits for every key of `request`. The reply may have `len_max` bytes.
    pub fn many(request: &ManyRequest, len_max: usize) -> Gather {
        let outstanding = request.key_count();
        let answer = match request {
            ManyRequest::Delete(_) | ManyRequest::Exists(_) => Answer::Number(0),
            ManyRequest::Get(_) => Answer::Values(vec![None; outstanding]),
            ManyRequest::Set(_) => Answer::Ok,
        };
        Gather { outstanding, answer, len: HEADER_LEN, len_max, failed: false }
    }

    /// Waits for `shard_count` answers to `request`. The reply may have `len_max` bytes.
    pub fn all(request: &AllRequest, shard_count: usize, len_max: usize) -> Gather {
        let answer = match request {
            AllRequest::Size => Answer::Number(0),
            AllRequest::Keys(_) => Answer::Keys(Vec::new()),
            AllRequest::Clear => Answer::Ok,
        };
        Gather { outstanding: shard_count, answer, len: HEADER_LEN, len_max, failed: false }
    }

    /// Takes in a shard's answer.
    ///
    /// # Panics
    /// If the answer is of another kind than the request, or for more keys than are outstanding.
    pub fn accept(&mut self, part: PartReply) {
        self.count(&part);
        let answered = match (&mut self.answer, part) {
            (Answer::Number(sum), PartReply::Count { keys, found }) => {
                *sum += found;
                keys
            }
            (Answer::Number(sum), PartReply::Size(size)) => {
                *sum += size;
                1
            }
            (Answer::Values(values), PartReply::Values(found)) => {
                let keys = found.len();
                for (position, value) in found {
                    values[position as usize] = value;
                }
                keys
            }
            (Answer::Keys(all), PartReply::Keys(mut keys)) => {
                all.append(&mut keys);
                1
            }
            (Answer::Ok, PartReply::Stored { keys }) => keys,
            (Answer::Ok, PartReply::Cleared) => 1,
            (Answer::TooLong, PartReply::Values(found)) => found.len(),
            (Answer::TooLong, PartReply::Keys(_) | PartReply::TooLong) => 1,
            (answer, part) => panic!("a shard answered {part:?} where {answer:?} is gathered"),
        };
        self.settle(answered);
    }

    /// Counts a part's share of the reply, and gives up all of it if that would be too long.
    fn count(&mut self, part: &PartReply) {
        let len = match part {
            PartReply::Values(found) => found
                .iter()
                .map(|(_, value)| value.as_ref().map_or(NULL_LEN, |value| bulk_len(value.len())))
                .fold(0, usize::saturating_add),
            PartReply::Keys(keys) => {
                keys.iter().map(|key| bulk_len(key.len())).fold(0, usize::saturating_add)
            }
            PartReply::TooLong => usize::MAX,
            _ => 0,
        };
        self.len = self.len.saturating_add(len);
        let grows = matches!(self.answer, Answer::Values(_) | Answer::Keys(_));
        if grows && self.len > self.len_max {
            self.answer = Answer::TooLong;
        }
    }

    /// How many bytes [`put`](Self::put) appends at most.
    pub fn len(&self) -> usize {
        if matches!(self.answer, Answer::TooLong) { ERROR_LEN } else { self.len.max(ERROR_LEN) }
    }

    /// Gives up on a part: so many keys (for an [`AllRequest`]: one shard) will not be answered for. The
    /// whole answer becomes an error.
    pub fn fail(&mut self, key_count: usize) {
        self.failed = true;
        self.settle(key_count);
    }

    /// The sum of the answers, where they are numbers.
    pub fn number(&self) -> Option<usize> {
        match self.answer {
            Answer::Number(sum) if !self.failed => Some(sum),
            _ => None,
        }
    }

    /// Whether every key is answered for.
    pub fn is_complete(&self) -> bool {
        self.outstanding == 0
    }

    /// Appends the reply. Call it when the answer is complete.
    pub fn put(&self, out: &mut Vec<u8>) {
        debug_assert!(self.is_complete(), "{} keys are outstanding", self.outstanding);
        if self.failed {
            return put_error(
                out,
                b"ERR a shard did not answer; the request may have been carried out in part",
            );
        }
        match &self.answer {
            Answer::Number(sum) => put_integer(out, *sum as i64),
            Answer::Ok => put_simple(out, "OK"),
            Answer::TooLong => put_too_long(out, self.len_max),
            Answer::Keys(keys) => {
                put_array_header(out, keys.len());
                keys.iter().for_each(|key| put_bulk(out, key));
            }
            Answer::Values(values) => {
                put_array_header(out, values.len());
                for value in values {
                    match value {
                        Some(value) => put_bulk(out, value),
                        None => put_null(out),
                    }
                }
            }
        }
    }

    fn settle(&mut self, answered: usize) {
        let left = self.outstanding.checked_sub(answered);
        self.outstanding = left.unwrap_or_else(|| {
            panic!("{answered} keys answered for where {} are outstanding", self.outstanding)
        });
    }
}

impl Session {
    /// A connection that has just been accepted.
    pub fn new(id: u64, peer: String) -> Session {
        Session { id, peer, name: Bytes::copy_from(b"") }
    }
}

/// The line of `CLIENT LIST` without the name is no longer.
const CLIENT_LINE_MAX: usize = 256;

impl Local {
    /// How many bytes [`answer`](Self::answer) appends at most, where that depends on the request or the session.
    pub fn len(&self, session: &Session) -> usize {
        let names = match self {
            Local::CommandInfo(names) => names,
            Local::ClientGetName => return bulk_len(session.name.len()),
            // Each byte of the name may become the four of an escape.
            Local::ClientList => return bulk_len(4 * session.name.len() + CLIENT_LINE_MAX),
            Local::Ping(Some(text)) | Local::Echo(text) => return bulk_len(text.len()),
            _ => return 0,
        };
        let mut one = Vec::new();
        let lens = names.iter().map(|name| {
            one.clear();
            find(name).map_or(NULL_LEN, |spec| {
                spec.put(&mut one);
                one.len()
            })
        });
        lens.sum()
    }

    /// Answers, and says what becomes of the connection.
    pub fn answer(&self, session: &mut Session, server: &ServerInfo, out: &mut Vec<u8>) -> Then {
        match self {
            Local::Ping(None) => put_simple(out, "PONG"),
            Local::Ping(Some(text)) | Local::Echo(text) => put_bulk(out, text),
            Local::Select | Local::ClientSetInfo => put_simple(out, "OK"),
            Local::Info(sections) => put_bulk(out, info(server, sections).as_bytes()),
            Local::CommandList => {
                put_array_header(out, COMMANDS.len());
                COMMANDS.iter().for_each(|spec| put_bulk(out, spec.name.as_bytes()));
            }
            Local::CommandCount => put_integer(out, COMMANDS.len() as i64),
            Local::CommandInfo(names) if names.is_empty() => {
                put_array_header(out, COMMANDS.len());
                COMMANDS.iter().for_each(|spec| spec.put(out));
            }
            Local::CommandInfo(names) => {
                put_array_header(out, names.len());
                for name in names {
                    match find(name) {
                        Some(spec) => spec.put(out),
                        None => put_null(out),
                    }
                }
            }
            Local::CommandDocs => put_array_header(out, 0),
            Local::ConfigGet(patterns) => {
                let globs: Vec<Glob> =
                    patterns.iter().map(|pattern| Glob::new(&pattern.to_ascii_lowercase())).collect();
                let wanted = || {
                    CONFIG.iter().filter(|(name, _)| globs.iter().any(|glob| glob.matches(name.as_bytes())))
                };
                put_array_header(out, 2 * wanted().count());
                for (name, value) in wanted() {
                    put_bulk(out, name.as_bytes());
                    put_bulk(out, value.as_bytes());
                }
            }
            Local::ClientSetName(name) => {
                session.name = name.clone();
                put_simple(out, "OK");
            }
            Local::ClientGetName if session.name.is_empty() => put_null(out),
            Local::ClientGetName => put_bulk(out, &session.name),
            Local::ClientId => put_integer(out, session.id as i64),
            Local::ClientList => {
                let Session { id, peer, name } = session;
                let name = name.escape_ascii();
                let line = format!("id={id} addr={peer} name={name} db=0 cmd=client user=default resp=2\n");
                put_bulk(out, line.as_bytes());
            }
            Local::Hello { name } => {
                if let Some(name) = name {
                    session.name = name.clone();
                }
                put_array_header(out, 14);
                for (field, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
                    put_bulk(out, field.as_bytes());
                    put_bulk(out, value.as_bytes());
                }
                for (field, number) in [("proto", 2), ("id", session.id as i64)] {
                    put_bulk(out, field.as_bytes());
                    put_integer(out, number);
                }
                for (field, value) in [("mode", "standalone"), ("role", "master")] {
                    put_bulk(out, field.as_bytes());
                    put_bulk(out, value.as_bytes());
                }
                put_bulk(out, b"modules");
                put_array_header(out, 0);
            }
            Local::Reset => {
                session.name = Bytes::copy_from(b"");
                put_simple(out, "RESET");
            }
            Local::Quit => {
                put_simple(out, "OK");
                return Then::Close;
            }
        }
        Then::Continue
    }
}

impl Spec {
    /// Appends the ten fields of COMMAND INFO; those after the key positions stay empty.
    fn put(&self, out: &mut Vec<u8>) {
        put_array_header(out, 10);
        put_bulk(out, self.name.as_bytes());
        put_integer(out, self.arity);
        put_array_header(out, self.flags.len());
        self.flags.iter().for_each(|flag| put_simple(out, flag));
        let (first, last, step) = self.keys;
        [first, last, step].into_iter().for_each(|place| put_integer(out, place));
        // ACL categories, tips, key specifications, subcommands.
        (0..4).for_each(|_| put_array_header(out, 0));
    }
}

fn info(server: &ServerInfo, wanted: &[Bytes]) -> String {
    let ServerInfo { process_id, tcp_port, uptime_seconds, connected_clients, .. } = server;
    let ServerInfo { commands_processed, shard_count, key_count, .. } = server;
    let keyspace = match key_count {
        0 => String::new(),
        keys => format!("db0:keys={keys}\r\n"),
    };
    let sections = [
        (
            "Server",
            format!(
                "redis_version:{REDIS_VERSION}\r\nserver_name:shardcache\r\nredis_mode:standalone\r\n\
                 process_id:{process_id}\r\ntcp_port:{tcp_port}\r\nuptime_in_seconds:{uptime_seconds}\r\n\
                 shards:{shard_count}\r\n"
            ),
        ),
        ("Clients", format!("connected_clients:{connected_clients}\r\n")),
        ("Stats", format!("total_commands_processed:{commands_processed}\r\n")),
        ("Replication", "role:master\r\nconnected_slaves:0\r\n".to_owned()),
        ("Keyspace", keyspace),
    ];
    let is_wanted = |section: &str| {
        let names = [section.as_bytes(), b"default", b"all", b"everything"];
        wanted.is_empty() || wanted.iter().any(|given| names.iter().any(|n| n.eq_ignore_ascii_case(given)))
    };
    let texts = sections.iter().filter(|(name, _)| is_wanted(name));
    texts.map(|(name, text)| format!("# {name}\r\n{text}")).collect::<Vec<_>>().join("\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(texts: &[&str]) -> Vec<Bytes> {
        texts.iter().map(|text| Bytes::copy_from(text.as_bytes())).collect()
    }

    fn reply(gather: &Gather) -> String {
        let mut out = Vec::new();
        gather.put(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_come_in_the_order_of_the_request_whatever_order_the_parts_come_in() {
        let request = ManyRequest::Get((0..).zip(bytes(&["a1", "b1", "a2", "c1", "b2"])).collect());
        let mut gather = Gather::many(&request, usize::MAX);
        let mut parts = request.partition(|key| key[0]);
        assert_eq!(parts.iter().map(|(shard, _)| *shard).collect::<Vec<_>>(), b"abc");
        parts.reverse();
        for (shard, part) in parts {
            assert!(!gather.is_complete());
            let ManyRequest::Get(keys) = part else { panic!("a part is of the request's kind") };
            let value = |key: Bytes| (shard != b'c').then_some(key);
            gather.accept(PartReply::Values(keys.into_iter().map(|(at, key)| (at, value(key))).collect()));
        }
        assert!(gather.is_complete());
        assert_eq!(reply(&gather), "*5\r\n$2\r\na1\r\n$2\r\nb1\r\n$2\r\na2\r\n$-1\r\n$2\r\nb2\r\n");
    }

    /// A shard that no longer owns all keys of its part cuts it again; the gathering does not notice.
    #[test]
    fn a_part_may_be_cut_again() {
        let request = ManyRequest::Delete(bytes(&["a", "b", "c"]));
        let mut gather = Gather::many(&request, usize::MAX);
        let (_, whole) = request.partition(|_| 0).remove(0);
        for (_, part) in whole.partition(|key| key[0]) {
            assert!(!gather.is_complete());
            gather.accept(PartReply::Count { keys: part.key_count(), found: 1 });
        }
        assert!(gather.is_complete());
        assert_eq!(reply(&gather), ":3\r\n");
    }

    #[test]
    fn all_shards_are_waited_for() {
        let mut gather = Gather::all(&AllRequest::Size, 3, usize::MAX);
        (1..=3).for_each(|size| gather.accept(PartReply::Size(size)));
        assert_eq!((gather.is_complete(), reply(&gather)), (true, ":6\r\n".to_owned()));

        let mut gather = Gather::all(&AllRequest::Keys(Bytes::copy_from(b"*")), 2, usize::MAX);
        gather.accept(PartReply::Keys(bytes(&["x"])));
        assert!(!gather.is_complete());
        gather.accept(PartReply::Keys(Vec::new()));
        assert_eq!((gather.is_complete(), reply(&gather)), (true, "*1\r\n$1\r\nx\r\n".to_owned()));

        let mut gather = Gather::all(&AllRequest::Clear, 2, usize::MAX);
        gather.accept(PartReply::Cleared);
        assert!(!gather.is_complete());
        gather.fail(1);
        assert!(gather.is_complete() && reply(&gather).starts_with("-ERR a shard did not answer"));
    }

    #[test]
    fn a_reply_may_be_as_long_as_its_limit_and_no_longer() {
        let request = ManyRequest::Get((0..).zip(bytes(&["a", "b", "c"])).collect());
        let part = |at, value: Option<&str>| {
            PartReply::Values(vec![(at, value.map(|value| Bytes::copy_from(value.as_bytes())))])
        };
        let len = HEADER_LEN + "$2\r\nxy\r\n$-1\r\n$10\r\n0123456789\r\n".len();
        for (len_max, fits) in [(len, true), (len - 1, false)] {
            let mut gather = Gather::many(&request, len_max);
            for part in [part(2, Some("0123456789")), part(0, Some("xy")), part(1, None)] {
                assert!(!gather.is_complete());
                gather.accept(part);
            }
            assert!(gather.is_complete());
            let refused = reply(&gather).starts_with("-ERR the reply is above the output limit of");
            assert_eq!(refused, !fits, "{}", reply(&gather));
        }
        let mut gather = Gather::all(&AllRequest::Keys(Bytes::copy_from(b"*")), 2, HEADER_LEN + 8);
        gather.accept(PartReply::Keys(bytes(&["x"])));
        gather.accept(PartReply::TooLong);
        assert!(reply(&gather).starts_with("-ERR the reply is above"));
        // A sum is as short as ever.
        let mut gather = Gather::all(&AllRequest::Size, 1, 0);
        gather.accept(PartReply::Size(6));
        assert_eq!(reply(&gather), ":6\r\n");
    }

    #[test]
    #[should_panic(expected = "2 keys answered for where 1 are outstanding")]
    fn an_answer_too_many_is_a_broken_invariant() {
        Gather::many(&ManyRequest::Exists(bytes(&["a"])), 0).accept(PartReply::Count { keys: 2, found: 0 });
    }
}
