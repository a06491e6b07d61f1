//! TLS by rustls: the files, the handshake, and the records of both directions.

use crate::connect_error::{CertificateFault, CertificateOwner, ConnectError};
use crate::settings::{SettingsError, TlsFiles};
use crate::transport::{Written, would_block};
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use std::fs;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// The plain text of one record. No more is given to rustls at a time, so that it becomes one record: its bytes are
/// all there for the server, or none of them is.
pub(crate) const RECORD_MAX: usize = 16 * 1024;

/// The files of TLS, read.
pub(crate) struct TlsConfig {
    files: TlsFiles,
    /// When each file was changed last, as of the time of reading.
    changed: [Option<SystemTime>; 3],
    config: Arc<ClientConfig>,
    identity: Arc<Identity>,
}

/// The roots and the chain of this node, which explain why a server refuses its certificate.
struct Identity {
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
}

impl Identity {
    /// The fault of the own certificate, as the authority of `ca` sees it.
    fn own_fault(&self, alert: AlertDescription) -> CertificateFault {
        let refused = || CertificateFault::Refused { alert: format!("{alert:?}") };
        let Some((own, between)) = self.chain.split_first() else { return CertificateFault::Absent };
        let verifier = WebPkiClientVerifier::builder_with_provider(self.roots.clone(), provider()).build();
        let Ok(verifier) = verifier else { return refused() };
        match verifier.verify_client_cert(own, between, UnixTime::now()) {
            Err(rustls::Error::InvalidCertificate(error)) => fault_of(&error, "").unwrap_or_else(refused),
            _ => match alert {
                AlertDescription::CertificateExpired => CertificateFault::Expired,
                AlertDescription::UnknownCA => CertificateFault::Foreign,
                AlertDescription::CertificateRequired => CertificateFault::Absent,
                _ => refused(),
            },
        }
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn fault_of(error: &CertificateError, host: &str) -> Option<CertificateFault> {
    Some(match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => CertificateFault::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            CertificateFault::NotYetValid
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => CertificateFault::Foreign,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            CertificateFault::Misnamed { host: host.to_owned() }
        }
        _ => return None,
    })
}

impl TlsConfig {
    /// Reads the files.
    pub(crate) fn load(files: &TlsFiles) -> Result<Self, SettingsError> {
        let changed = times(files);
        let Some(ca) = &files.ca else {
            let needed_for = "TLS needs the certificates of the authorities that sign those of the servers";
            return Err(SettingsError::Missing { key: "ca", needed_for });
        };
        let mut roots = RootCertStore::empty();
        for certificate in certificates("ca", ca)? {
            roots.add(certificate).map_err(|error| unusable("ca", ca, error))?;
        }
        let roots = Arc::new(roots);
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable("ca", ca, error))?
            .with_root_certificates(roots.clone());
        let (config, chain) = match (&files.certificate, &files.key) {
            (Some(path), Some(key_path)) => {
                let chain = certificates("certificate", path)?;
                let key = PrivateKeyDer::from_pem_slice(&bytes("key", key_path)?)
                    .map_err(|error| unusable("key", key_path, error))?;
                let config = builder.with_client_auth_cert(chain.clone(), key).map_err(|error| {
                    unusable("key", key_path, format_args!("with {}: {error}", path.display()))
                })?;
                (config, chain)
            }
            _ => (builder.with_no_client_auth(), Vec::new()),
        };
        let identity = Arc::new(Identity { roots, chain });
        Ok(Self { files: files.clone(), changed, config: Arc::new(config), identity })
    }

    /// Whether there is a certificate of this node.
    pub(crate) fn has_certificate(&self) -> bool {
        !self.identity.chain.is_empty()
    }

    /// Reads the files again if one has changed. Files that cannot be used are not taken, and the old ones stay in use.
    pub(crate) fn refresh(&mut self) {
        let changed = times(&self.files);
        if changed == self.changed {
            return;
        }
        match Self::load(&self.files) {
            Ok(fresh) => {
                log::info!("the certificates of NATS have changed and were read again");
                *self = fresh;
            }
            Err(error) => {
                // Not again before the next change.
                self.changed = changed;
                log::error!(
                    "the certificates of NATS have changed and cannot be used, the old ones stay: {error}"
                );
            }
        }
    }

    /// Begins a session with the server whose certificate must be for this name.
    pub(crate) fn session(&self, host: &str) -> Result<TlsSession, ConnectError> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| ConnectError::Tls { why: format!("no certificate can be for the name `{host}`") })?;
        let connection = ClientConnection::new(self.config.clone(), name)
            .map_err(|error| ConnectError::Tls { why: error.to_string() })?;
        let identity = self.identity.clone();
        Ok(TlsSession { connection, identity, host: host.to_owned(), in_flight: 0 })
    }
}

fn times(files: &TlsFiles) -> [Option<SystemTime>; 3] {
    let time = |path: &Option<std::path::PathBuf>| fs::metadata(path.as_ref()?).ok()?.modified().ok();
    [time(&files.ca), time(&files.certificate), time(&files.key)]
}

fn unusable(key: &'static str, path: &Path, why: impl ToString) -> SettingsError {
    SettingsError::File { key, path: path.to_owned(), why: why.to_string() }
}

fn bytes(key: &'static str, path: &Path) -> Result<Vec<u8>, SettingsError> {
    fs::read(path).map_err(|error| unusable(key, path, error))
}

/// The certificates of a file: one at least.
fn certificates(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
    let bytes = bytes(key, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| unusable(key, path, error))?;
    if found.is_empty() {
        return Err(unusable(key, path, "it has no certificate in the form of PEM"));
    }
    Ok(found)
}

/// A session of TLS over one connection.
pub(crate) struct TlsSession {
    connection: ClientConnection,
    identity: Arc<Identity>,
    host: String,
    /// The bytes of plain text in a record that is not written to its end.
    in_flight: usize,
}

impl TlsSession {
    pub(crate) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Reads plain text: `None` if nothing is there; 0 bytes if something has come that was no text.
    pub(crate) fn read(
        &mut self,
        mut stream: impl Read + Write,
        space: &mut [u8],
    ) -> Result<Option<usize>, ConnectError> {
        match self.connection.reader().read(space) {
            Ok(0) => return Err(ConnectError::Closed),
            Ok(count) => return Ok(Some(count)),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(ConnectError::Truncated),
            Err(error) if would_block(&error) => {}
            Err(error) => return Err(ConnectError::of_io(&error)),
        }
        match self.connection.read_tls(&mut stream) {
            // The next look tells whether the end was in order.
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(Some(0)),
            Err(error) if would_block(&error) => return Ok(None),
            Err(error) => return Err(ConnectError::of_io(&error)),
        }
        if let Err(error) = self.connection.process_new_packets() {
            // The server learns why, if there is room.
            let _ = self.connection.write_tls(&mut stream);
            return Err(self.explain(error));
        }
        Ok(Some(0))
    }

    /// Writes plain text, of which the caller gives the same again until it is written.
    pub(crate) fn write(
        &mut self,
        mut stream: impl Write,
        slices: &[IoSlice<'_>],
    ) -> Result<Written, ConnectError> {
        if self.in_flight == 0 && !slices.is_empty() {
            let written = self.connection.writer().write_vectored(slices);
            self.in_flight = written.map_err(|error| ConnectError::of_io(&error))?;
        }
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut stream) {
                Ok(0) => return Err(ConnectError::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if would_block(&error) => return Ok(Written::Blocked { begun: self.in_flight }),
                Err(error) => return Err(ConnectError::of_io(&error)),
            }
        }
        Ok(Written::Bytes(std::mem::take(&mut self.in_flight)))
    }

    /// Whether something of TLS itself, or the rest of a record, waits.
    pub(crate) fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    /// Writes the end, as far as there is room.
    pub(crate) fn close(&mut self, mut stream: impl Write) {
        self.connection.send_close_notify();
        let _ = self.connection.write_tls(&mut stream);
    }

    fn explain(&self, error: rustls::Error) -> ConnectError {
        let client = |fault| ConnectError::Certificate { of: CertificateOwner::Client, fault };
        match error {
            rustls::Error::InvalidCertificate(ref certificate) => {
                let of = CertificateOwner::Server;
                let fault = fault_of(certificate, &self.host)
                    .unwrap_or_else(|| CertificateFault::Refused { alert: error.to_string() });
                ConnectError::Certificate { of, fault }
            }
            rustls::Error::NoCertificatesPresented => {
                ConnectError::Certificate { of: CertificateOwner::Server, fault: CertificateFault::Absent }
            }
            rustls::Error::AlertReceived(
                alert @ (AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::CertificateRequired
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied),
            ) => client(self.identity.own_fault(alert)),
            other => ConnectError::Tls { why: other.to_string() },
        }
    }
}
