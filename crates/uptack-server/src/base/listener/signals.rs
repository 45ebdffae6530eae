//! Signals of the operating system.

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Result;

/// The handlers of the signals that a server obeys. Once they are installed, no such signal ends the process at once,
/// so they are installed before the server says that it is ready.
pub struct Signals {
    #[cfg(unix)]
    interrupt: Signal,
    #[cfg(unix)]
    terminate: Signal,
    #[cfg(unix)]
    hangup: Signal,
}

#[cfg(unix)]
impl Signals {
    /// Installs the handlers.
    pub fn install() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits until the process is asked to stop, by an interrupt or a termination signal. `reload` is called at each
    /// hangup signal before that.
    pub async fn wait(mut self, reload: impl AsyncFn()) -> Result<()> {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return Ok(()),
                _ = self.terminate.recv() => return Ok(()),
                _ = self.hangup.recv() => reload().await,
            }
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// There is nothing to install.
    pub fn install() -> Result<Self> {
        Ok(Self {})
    }

    /// Waits until the process is asked to stop.
    pub async fn wait(self, _reload: impl AsyncFn()) -> Result<()> {
        Ok(tokio::signal::ctrl_c().await?)
    }
}
