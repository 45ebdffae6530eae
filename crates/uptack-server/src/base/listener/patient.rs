//! A stream that is closed when its other end accepts no bytes for too long.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};

use super::seats::Seat;

type Polled<T> = Poll<io::Result<T>>;

/// A stream whose writes must make progress, and which notes when bytes are read or written.
pub(super) struct Patient<S> {
    stream: S,
    patience: Duration,
    /// When the pending write has waited too long; set anew when a write begins to wait.
    deadline: Pin<Box<Sleep>>,
    waiting: bool,
    seat: Arc<Seat>,
}

impl<S> Patient<S> {
    pub(super) fn new(stream: S, patience: Duration, seat: Arc<Seat>) -> Self {
        Self { stream, patience, deadline: Box::pin(tokio::time::sleep(patience)), waiting: false, seat }
    }

    /// Passes on the outcome of a write, or fails it if it has waited too long.
    fn timed<T>(&mut self, context: &mut Context<'_>, outcome: Polled<T>) -> Polled<T> {
        if outcome.is_ready() {
            self.waiting = false;
            self.seat.progress();
            return outcome;
        }
        if !self.waiting {
            self.waiting = true;
            self.deadline.as_mut().reset(Instant::now() + self.patience);
        }
        ready!(self.deadline.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: Unpin> Patient<S> {
    fn stream(&mut self) -> Pin<&mut S> {
        Pin::new(&mut self.stream)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Polled<()> {
        let outcome = self.stream().poll_read(context, buffer);
        if outcome.is_ready() {
            self.seat.progress();
        }
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Polled<usize> {
        let outcome = self.stream().poll_write(context, bytes);
        self.timed(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Polled<usize> {
        let outcome = self.stream().poll_write_vectored(context, slices);
        self.timed(context, outcome)
    }

    // Answers of many connections share their bytes, which writing them one slice at a time would copy.
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled<()> {
        match self.stream().poll_flush(context) {
            // If nothing is buffered here, the other end has taken nothing either.
            Poll::Ready(outcome) => Poll::Ready(outcome),
            Poll::Pending => self.timed(context, Poll::Pending),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Polled<()> {
        let outcome = self.stream().poll_shutdown(context);
        self.timed(context, outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::listener::{ClientAddress, seats::Seats};
    use std::net::Ipv4Addr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Our end and the other end of a pipe that holds eight bytes.
    fn pipe(patience: Duration) -> (Patient<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let seat = Seats::new(1, 1).admit(ClientAddress::of(Ipv4Addr::LOCALHOST.into())).unwrap();
        let (ours, theirs) = tokio::io::duplex(8);
        (Patient::new(ours, patience, seat), theirs)
    }

    #[tokio::test]
    async fn a_reader_that_stops_is_given_up_and_a_slow_one_is_not() {
        let (mut ours, mut theirs) = pipe(Duration::from_secs(2));
        // Eight bytes at a time for longer than the patience are slow, and progress.
        let reader = tokio::spawn(async move {
            let mut bytes = [0; 8];
            for _ in 0..12 {
                tokio::time::sleep(Duration::from_millis(200)).await;
                theirs.read_exact(&mut bytes).await.unwrap();
            }
            theirs
        });
        ours.write_all(&[7; 96]).await.unwrap();
        let _theirs = reader.await.unwrap();
        let error = ours.write_all(&[7; 32]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
