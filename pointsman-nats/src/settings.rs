//! Which servers there are, and how they are reached.

use crate::debug_by_display::debug_by_display;
use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The port of a server whose address has none.
const PORT: u16 = 4222;

/// Settings of NATS that can never work.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsError {
    /// There is no server.
    NoServers,
    /// An address is none.
    Server {
        /// The text.
        value: String,
        /// Its fault.
        why: &'static str,
    },
    /// An address would send plain text to another machine, and `insecure` is not set.
    PlainText {
        /// The address.
        value: String,
    },
    /// A configuration file is no TOML.
    Syntax {
        /// The place, and the fault.
        why: String,
    },
    /// A configuration file has no section `[remote.nats]`.
    NoSection,
    /// There is no such key.
    UnknownKey {
        /// The key.
        key: String,
    },
    /// A key has another kind of value.
    Value {
        /// The key.
        key: &'static str,
        /// The value, as TOML.
        value: String,
        /// The kind that it should have.
        expected: &'static str,
    },
    /// One key needs another one.
    Missing {
        /// The key that is not there.
        key: &'static str,
        /// Its purpose.
        needed_for: &'static str,
    },
    /// A file cannot be used.
    File {
        /// The key that names it.
        key: &'static str,
        /// Its path.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The name cannot be a part of a subject.
    Name {
        /// Whose name it is.
        of: &'static str,
        /// The name.
        value: String,
    },
    /// An address says `tls://`, and the crate was built without its feature `tls`.
    WithoutTls {
        /// The address.
        value: String,
    },
    /// The operating system gives no thread, or no poll.
    System {
        /// The reason.
        why: String,
    },
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::NoServers => {
                f.write_str("no server: set `servers` to a list such as [\"nats://127.0.0.1:4222\"]")
            }
            SettingsError::Server { value, why } => write!(
                f,
                "`servers`: `{value}` is no address of a server: {why}; write tls://HOST:PORT, or \
                 nats://127.0.0.1:PORT"
            ),
            SettingsError::PlainText { value } => write!(
                f,
                "`servers`: `{value}` would send plain text to another machine: write tls:// in place of nats://, or \
                 set `insecure = true` if the network is trusted"
            ),
            SettingsError::Syntax { why } => write!(f, "the configuration is no TOML: {why}"),
            SettingsError::NoSection => f.write_str(
                "the configuration has no section `[remote.nats]`: add it with `servers = [\"nats://127.0.0.1:4222\"]`",
            ),
            SettingsError::UnknownKey { key } => {
                write!(f, "unknown key `{key}`: the keys are `{}`", KEYS.join("`, `"))
            }
            SettingsError::Value { key, value, expected } => {
                write!(f, "`{key}`: `{value}` is not {expected}")
            }
            SettingsError::Missing { key, needed_for } => write!(f, "`{key}` is not set: {needed_for}"),
            SettingsError::File { key, path, why } => {
                write!(f, "`{key}`: the file {} cannot be used: {why}", path.display())
            }
            SettingsError::Name { of, value } => write!(
                f,
                "the name `{value}` of the {of} cannot stand in a subject of NATS: use letters, digits, `-` and `_`"
            ),
            SettingsError::WithoutTls { value } => {
                write!(f, "`servers`: `{value}` needs the feature `tls` of pointsman-nats")
            }
            SettingsError::System { why } => write!(f, "the engine gets no thread or no poll: {why}"),
        }
    }
}

impl Error for SettingsError {}

impl SettingsError {
    /// The error shows the line, which may have the address of a server.
    pub(crate) fn syntax(error: &toml::de::Error) -> Self {
        SettingsError::Syntax { why: without_passwords(&error.to_string()) }
    }
}

debug_by_display! { SettingsError }

/// The keys of `[remote.nats]`.
const KEYS: [&str; 5] = ["servers", "ca", "certificate", "key", "insecure"];

/// The files of TLS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TlsFiles {
    pub(crate) ca: Option<PathBuf>,
    pub(crate) certificate: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

/// A server, as its address says.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ServerAddress {
    pub(crate) tls: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    /// The name that its certificate must have.
    pub(crate) tls_name: String,
}

impl ServerAddress {
    /// Reads `nats://[user[:password]@]host[:port]`, or `tls://` so.
    pub(crate) fn parse(value: &str) -> Result<Self, SettingsError> {
        let wrong = |why| SettingsError::Server { value: without_password(value), why };
        let (scheme, rest) =
            value.split_once("://").ok_or_else(|| wrong("it has no `nats://` or `tls://`"))?;
        let tls = match scheme {
            "nats" => false,
            "tls" => true,
            _ => return Err(wrong("it begins with neither `nats://` nor `tls://`")),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (login, endpoint) = match rest.rsplit_once('@') {
            Some((login, endpoint)) => (Some(login), endpoint),
            None => (None, rest),
        };
        let (host, port) = endpoint_of(endpoint).map_err(wrong)?;
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
            None => (None, None),
            Some((user, password)) => {
                let decode =
                    |text| percent_decoded(text).ok_or_else(|| wrong("a `%` has no two digits behind it"));
                let password = decode(password)?;
                (Some(decode(user)?), (!password.is_empty()).then_some(password))
            }
        };
        Ok(Self { tls, tls_name: host.clone(), host, port, user, password })
    }

    /// The server of another address of the same cluster, `host:port`, of which this one has told.
    pub(crate) fn neighbour(&self, endpoint: &str) -> Option<Self> {
        let (host, port) = endpoint_of(endpoint).ok()?;
        // A certificate is seldom for an address of IP; the servers of a cluster have one name then.
        let tls_name = if is_ip(&host) { self.tls_name.clone() } else { host.clone() };
        Some(Self { host, port, tls_name, ..self.clone() })
    }

    /// Whether it is this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost")
            || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

fn is_ip(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok()
}

impl fmt::Display for ServerAddress {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "tls" } else { "nats" };
        if self.host.contains(':') {
            write!(f, "{scheme}://[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{scheme}://{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Host and port of `host`, `host:port`, `[address]` or `[address]:port`.
fn endpoint_of(text: &str) -> Result<(String, u16), &'static str> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("a `]` is missing")?;
            if !host.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()) {
                return Err("there is no address of IPv6 within `[` and `]`");
            }
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return Err("there is no `:` behind `]`"),
            }
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if host.is_empty() || host.len() > 253 || !host.chars().all(is_name) {
        return Err("its host is no name and no address");
    }
    let port = match port {
        None => PORT,
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            port.parse().ok().filter(|port| *port != 0).ok_or("its port is not between 1 and 65535")?
        }
        Some(_) => return Err("its port is not a number"),
    };
    Ok((host.to_owned(), port))
}

/// The text of an address as errors show it.
fn without_password(value: &str) -> String {
    let Some((login, endpoint)) = value.rsplit_once('@') else { return value.to_owned() };
    match login.split_once("://") {
        Some((scheme @ ("nats" | "tls"), _)) => format!("{scheme}://…@{endpoint}"),
        _ => format!("…@{endpoint}"),
    }
}

/// A text with lines of a file, which may have addresses: in each line, the text from the first `:` to the last `@` is left out.
/// This may be more than passwords, since a password may have any character.
pub(crate) fn without_passwords(text: &str) -> String {
    let shown = |line: &str| match (line.find(':'), line.rfind('@')) {
        (Some(from), Some(to)) if from < to => format!("{}…{}", &line[..=from], &line[to..]),
        _ => line.to_owned(),
    };
    text.split('\n').map(shown).collect::<Vec<_>>().join("\n")
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).ok()
}

/// The NATS servers that connect the nodes of a cluster: the engine of a node.
///
/// A node has two connections, which go to one server after the other until one takes them. Plain text (`nats://`) goes to
/// this machine alone, unless [`insecure`](Self::insecure) allows more.
#[derive(Clone, PartialEq, Eq)]
#[must_use]
pub struct Nats {
    pub(crate) servers: Vec<String>,
    pub(crate) files: TlsFiles,
    pub(crate) insecure: bool,
}

impl fmt::Debug for Nats {
    /// Without users and passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers: Vec<String> = self.servers.iter().map(|server| without_password(server)).collect();
        f.debug_struct("Nats")
            .field("servers", &servers)
            .field("files", &self.files)
            .field("insecure", &self.insecure)
            .finish()
    }
}

impl Nats {
    /// Names no server: the section `[remote.nats]` of the system's configuration does.
    ///
    /// ```
    /// use pointsman::System;
    /// use pointsman::remote::Node;
    /// use pointsman_nats::Nats;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let file = "[remote]\nnode = 'n1'\n[remote.nats]\nservers = ['nats://127.0.0.1:4222']";
    /// let node = Node::new("unnamed").engine(Nats::configured());
    /// let system = System::builder("demo").node(node).config(file)?.build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn configured() -> Self {
        Self::servers([] as [&str; 0])
    }

    /// Names the servers, each as `nats://HOST:PORT` or `tls://HOST:PORT`, with `USER:PASSWORD@` before the host if the
    /// server knows users by passwords. Wrong addresses are an error when the node starts.
    pub fn servers(servers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let servers = servers.into_iter().map(Into::into).collect();
        Self { servers, files: TlsFiles::default(), insecure: false }
    }

    /// Names other servers, with the other settings as they are.
    pub fn with_servers(mut self, servers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.servers = servers.into_iter().map(Into::into).collect();
        self
    }

    /// Names the file with the certificates of the authorities that sign the servers' certificates, as PEM. `tls://` needs it.
    pub fn ca(mut self, path: impl AsRef<Path>) -> Self {
        self.files.ca = Some(path.as_ref().to_owned());
        self
    }

    /// Names the files with the certificate of this node (with those between it and the authority behind it) and with its
    /// key, as PEM. They are read again when they have changed.
    pub fn certificate(mut self, certificate: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        self.files.certificate = Some(certificate.as_ref().to_owned());
        self.files.key = Some(key.as_ref().to_owned());
        self
    }

    /// Allows plain text to other machines: all that nodes say can be read and changed on the way.
    pub fn insecure(mut self, yes: bool) -> Self {
        self.insecure = yes;
        self
    }

    /// Reads the keys of `[remote.nats]`: `servers`, `ca`, `certificate`, `key`, `insecure`.
    ///
    /// # Errors
    ///
    /// A [`SettingsError`] names the key and the value that cannot be used.
    ///
    /// # Examples
    ///
    /// ```
    /// use pointsman_nats::Nats;
    ///
    /// let table = "servers = ['nats://127.0.0.1:4222']\nca = 'ca.pem'\ncertificate = 'n1.pem'\nkey = 'n1.key'".parse()?;
    /// let nats = Nats::of_table(&table)?;
    /// assert_eq!(nats, Nats::servers(["nats://127.0.0.1:4222"]).ca("ca.pem").certificate("n1.pem", "n1.key"));
    ///
    /// let error = Nats::of_table(&"server = 'x'".parse()?).unwrap_err();
    /// assert!(error.to_string().starts_with("unknown key `server`"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_table(table: &toml::Table) -> Result<Self, SettingsError> {
        let nats = Self::configured().with_table(table)?;
        nats.addresses()?;
        Ok(nats)
    }

    /// These settings, as far as the table has no others.
    pub(crate) fn with_table(self, table: &toml::Table) -> Result<Self, SettingsError> {
        let mut nats = self;
        for (key, value) in table {
            let Some(key) = KEYS.iter().copied().find(|known| known == key) else {
                return Err(SettingsError::UnknownKey { key: key.clone() });
            };
            let wrong = |expected| SettingsError::Value {
                key,
                value: without_passwords(&value.to_string()),
                expected,
            };
            let path = || {
                let text = value.as_str().filter(|text| !text.is_empty());
                text.map(|text| Some(PathBuf::from(text))).ok_or_else(|| wrong("the path of a file"))
            };
            match key {
                "servers" => {
                    let texts = value.as_array().and_then(|list| {
                        list.iter().map(|value| value.as_str().map(str::to_owned)).collect()
                    });
                    nats.servers = texts.ok_or_else(|| wrong("a list of addresses"))?;
                }
                "ca" => nats.files.ca = path()?,
                "certificate" => nats.files.certificate = path()?,
                "key" => nats.files.key = path()?,
                _ => nats.insecure = value.as_bool().ok_or_else(|| wrong("true or false"))?,
            }
        }
        Ok(nats)
    }

    /// Reads the section `[remote.nats]` of a whole configuration file, for programs that use it without a system. A system
    /// that has the file by
    /// [`SystemBuilder::config`](https://docs.rs/pointsman/latest/pointsman/struct.SystemBuilder.html#method.config) gives the
    /// section to its engine itself: see [`configured`](Self::configured).
    ///
    /// # Errors
    ///
    /// A [`SettingsError`] says what is missing, or names the key and the value that cannot be used.
    ///
    /// # Examples
    ///
    /// ```
    /// use pointsman_nats::Nats;
    ///
    /// let file = "[remote]\nnode = 'n1'\n[remote.nats]\nservers = ['nats://127.0.0.1:4222']";
    /// assert_eq!(Nats::of_config(file)?, Nats::servers(["nats://127.0.0.1:4222"]));
    /// # Ok::<(), pointsman_nats::SettingsError>(())
    /// ```
    pub fn of_config(toml: &str) -> Result<Self, SettingsError> {
        let file: toml::Table = toml.parse().map_err(|error| SettingsError::syntax(&error))?;
        let section = file.get("remote").and_then(|remote| remote.get("nats"));
        Self::of_table(section.and_then(toml::Value::as_table).ok_or(SettingsError::NoSection)?)
    }

    /// The servers, checked.
    pub(crate) fn addresses(&self) -> Result<Vec<ServerAddress>, SettingsError> {
        let mut addresses = Vec::new();
        for value in &self.servers {
            let address = ServerAddress::parse(value)?;
            let value = || without_password(value);
            if address.tls && !cfg!(feature = "tls") {
                return Err(SettingsError::WithoutTls { value: value() });
            }
            if address.tls && self.files.ca.is_none() {
                let needed_for =
                    "an address says `tls://`, and the certificate of the server must be checked";
                return Err(SettingsError::Missing { key: "ca", needed_for });
            }
            if !address.tls && !self.insecure && !address.is_loopback() {
                return Err(SettingsError::PlainText { value: value() });
            }
            addresses.push(address);
        }
        match (&self.files.certificate, &self.files.key) {
            (Some(_), None) => Err(SettingsError::Missing {
                key: "key",
                needed_for: "`certificate` needs the key that belongs to it",
            }),
            (None, Some(_)) => Err(SettingsError::Missing {
                key: "certificate",
                needed_for: "`key` needs the certificate that it belongs to",
            }),
            _ if addresses.is_empty() => Err(SettingsError::NoServers),
            _ => Ok(addresses),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> toml::Table {
        text.parse().expect("it is TOML")
    }

    #[test]
    fn an_address_has_a_scheme_a_login_a_host_and_a_port() {
        let parsed = |text| ServerAddress::parse(text).expect("an address");
        let plain = parsed("nats://127.0.0.1:4333");
        assert_eq!(
            (plain.tls, plain.host.as_str(), plain.port, plain.user),
            (false, "127.0.0.1", 4333, None)
        );
        assert_eq!(parsed("tls://nats.example").to_string(), "tls://nats.example:4222");
        assert_eq!(parsed("tls://[::1]:5/").to_string(), "tls://[::1]:5");
        let with_login = parsed("nats://n%31:p%40%3a@localhost");
        assert_eq!((with_login.user.as_deref(), with_login.password.as_deref()), (Some("n1"), Some("p@:")));
        assert_eq!(format!("{with_login:?}"), "nats://localhost:4222", "a password is not shown");
    }

    #[test]
    fn keys_of_a_file_come_before_those_of_the_code() {
        let table = "servers = ['nats://b:1']\ninsecure = true".parse().unwrap();
        let nats = Nats::servers(["nats://a:1"]).ca("ca.pem").with_table(&table);
        assert_eq!(nats, Ok(Nats::servers(["nats://b:1"]).ca("ca.pem").insecure(true)));
        use pointsman::remote::Engine;
        let mut nats = Nats::servers(["nats://a:1"]);
        assert!(nats.configure("nats", "servers = ['nats://c:1']").is_ok());
        assert_eq!(nats, Nats::servers(["nats://c:1"]));
        for (section, toml, expected) in [
            ("nats", "server = 1", "unknown key `server`"),
            ("nats", "servers", "no TOML"),
            ("other", "", "`[remote.other]`"),
        ] {
            let said = nats.configure(section, toml).expect_err(toml).to_string();
            assert!(said.contains(expected), "{said}");
            assert_eq!(nats, Nats::servers(["nats://c:1"]), "it is as before");
        }
    }

    #[test]
    fn a_section_of_a_configuration_is_read_or_its_fault_is_told() {
        let server = if cfg!(feature = "tls") { "tls://a:1" } else { "nats://a:1" };
        let section = format!(
            "servers = ['{server}']\nca = 'ca.pem'\ncertificate = 'n.pem'\nkey = 'n.key'\ninsecure = true"
        );
        let file = format!("seed = 7\n[remote]\nnode = 'n1'\n[remote.nats]\n{section}");
        let nats = Nats::servers([server]).ca("ca.pem").certificate("n.pem", "n.key").insecure(true);
        assert_eq!(Nats::of_config(&file), Ok(nats));
        for (file, expected) in [
            ("", "no section `[remote.nats]`"),
            ("[remote]\nnode = 'n1'", "no section `[remote.nats]`"),
            ("[remote]\nnats = 7", "no section `[remote.nats]`"),
            ("[remote.nats", "the configuration is no TOML"),
            ("[remote.nats]", "no server: set `servers`"),
            ("[remote.nats]\nserver = 1", "unknown key `server`"),
            ("[remote.nats]\nservers = 1", "`servers`: `1` is not a list of addresses"),
        ] {
            let said = Nats::of_config(file).expect_err(file).to_string();
            assert!(said.contains(expected), "{file}: {said}");
        }
    }

    #[test]
    fn a_text_that_is_no_address_is_refused_without_its_password() {
        for text in [
            "",
            "127.0.0.1:4222",
            "http://a",
            "nats://",
            "nats://:4222",
            "nats://a:b:c",
            "nats://a:0",
            "nats://a:65536",
            "nats://a:+1",
            "nats://a:",
            "nats://[::1",
            "nats://[a]:1",
            "nats://[::1]1",
            "nats://a b",
            "nats://a/b",
            "nats://u:%4@a",
            "nats://u:%ff@a",
        ] {
            let error = ServerAddress::parse(text).expect_err(text);
            assert!(matches!(error, SettingsError::Server { .. }), "{text}");
        }
        let error = ServerAddress::parse("nats://u:secret@a b").unwrap_err().to_string();
        assert!(!error.contains("secret") && error.contains("nats://…@a b"), "{error}");
    }

    #[test]
    fn no_text_shows_a_password() {
        for (address, shown) in [
            ("nats://u:pw@h:1", "nats://…@h:1"),
            ("tls://u:pw://@y@h", "tls://…@h"),
            ("u:pw@h", "…@h"),
            ("u:pw@nats://h", "…@nats://h"),
            ("u:pw://x@h", "…@h"),
            ("nats://h:1", "nats://h:1"),
        ] {
            assert_eq!(without_password(address), shown);
            let nats = Nats::servers([address]).insecure(true);
            let debug = format!("{nats:?}");
            assert!(!debug.contains("pw") && debug.contains(shown), "{debug}");
            if let Ok(texts) = nats.addresses() {
                assert!(!format!("{texts:?}{}", texts[0]).contains("pw"), "{address}");
            }
            if let Err(error) = nats.addresses() {
                assert!(!format!("{error} {error:?}").contains("pw"), "{address}: {error}");
            }
        }
        use pointsman::remote::Engine;
        for wrong in [
            "servers = 'nats://u:pw@h'",
            "servers = ['nats://u:pw@h', 5]",
            "servers = ['nats://u:pw@h', 5",
            "servers = [\n'nats://u:pw@h'\n'nats://u:pw@h'\n]",
            "servers = ['http://u:pw@h']",
            "servers = ['nats://u:pw@10.0.0.1']",
            "ca = ['nats://u:pw@h']",
        ] {
            let file = format!("[remote.nats]\n{wrong}");
            let mut errors = vec![Nats::of_config(&file).expect_err(wrong).to_string()];
            errors.extend(
                Nats::configured().configure("nats", wrong).err().map(|error| format!("{error} {error:?}")),
            );
            for error in errors {
                assert!(!error.contains("pw") && error.contains("…@"), "{error}");
            }
        }
    }

    #[test]
    fn plain_text_stays_on_this_machine_unless_it_is_allowed() {
        for host in ["127.0.0.1", "127.9.9.9", "localhost", "[::1]"] {
            assert!(Nats::servers([format!("nats://{host}:1")]).addresses().is_ok(), "{host}");
        }
        for host in ["10.0.0.1", "example.org", "localhost.example.org", "[::2]", "0.0.0.0"] {
            let nats = Nats::servers([format!("nats://{host}:1")]);
            assert!(matches!(nats.addresses(), Err(SettingsError::PlainText { .. })), "{host}");
            assert!(nats.insecure(true).addresses().is_ok(), "{host}");
        }
    }

    #[test]
    fn files_that_belong_together_are_demanded() {
        assert_eq!(Nats::servers([""; 0]).addresses(), Err(SettingsError::NoServers));
        let missing = |nats: Nats| match nats.addresses() {
            Err(SettingsError::Missing { key, .. }) => key,
            other => panic!("{other:?}"),
        };
        if cfg!(feature = "tls") {
            assert_eq!(missing(Nats::servers(["tls://a"])), "ca");
        } else {
            let error = Nats::servers(["tls://a"]).addresses();
            assert!(matches!(error, Err(SettingsError::WithoutTls { .. })));
        }
        let mut nats = Nats::servers(["nats://localhost"]);
        nats.files.key = Some("k".into());
        assert_eq!(missing(nats.clone()), "certificate");
        (nats.files.certificate, nats.files.key) = (Some("c".into()), None);
        assert_eq!(missing(nats), "key");
    }

    #[test]
    fn a_table_is_read_and_its_faults_name_key_and_value() {
        let nats = Nats::of_table(&table("servers = ['nats://10.0.0.1']\ninsecure = true")).unwrap();
        assert_eq!(nats, Nats::servers(["nats://10.0.0.1"]).insecure(true));
        for (text, key, value) in [
            ("servers = 'nats://localhost'", "servers", "nats://localhost"),
            ("servers = ['nats://localhost', 4]", "servers", "4"),
            ("ca = 1", "ca", "1"),
            ("certificate = ''", "certificate", "\"\""),
            ("key = []", "key", "[]"),
            ("insecure = 'yes'", "insecure", "yes"),
            ("servers = ['ftp://x']", "servers", "ftp://x"),
            ("servers = ['nats://10.0.0.1']", "servers", "nats://10.0.0.1"),
            ("sever = []", "sever", "servers"),
            ("insecure = true", "servers", "nats://127.0.0.1:4222"),
        ] {
            let error = Nats::of_table(&table(text)).expect_err(text).to_string();
            assert!(error.contains(&format!("`{key}`")) && error.contains(value), "{text}: {error}");
        }
    }

    #[test]
    fn a_neighbour_keeps_the_login_and_the_name_of_the_certificate() {
        let told = ServerAddress::parse("tls://u:p@nats.example:1").unwrap();
        let by_ip = told.neighbour("10.0.0.2:5").expect("an endpoint");
        assert_eq!(
            (by_ip.host.as_str(), by_ip.port, by_ip.tls_name.as_str()),
            ("10.0.0.2", 5, "nats.example")
        );
        assert_eq!((by_ip.tls, by_ip.user.as_deref()), (true, Some("u")));
        assert_eq!(told.neighbour("b.example:5").expect("an endpoint").tls_name, "b.example");
        assert_eq!(told.neighbour("a b"), None);
    }
}
