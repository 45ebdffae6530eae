use std::fmt;

use crate::channel::Channel;
use crate::display::separated;
use crate::error::Result;

/// Any channel, given as its cells: `custom(11=0.3:0.45, 12=0.4:0.1, 22=0.3:0.45)`.
///
/// **Guarantee.** Whatever its law gives; nothing is promised by construction.
///
/// **Algorithm.** One coin chooses among the cells.
///
/// ```
/// use uptack::Mechanism;
/// let mechanism: Mechanism = "custom(1=2/3:1/3, 0=1/3:2/3)".parse()?;
/// assert_eq!(mechanism.channel(), "randomized-response(t=2/3)".parse::<Mechanism>()?.channel());
/// # Ok::<(), uptack::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Custom {
    text: String,
    channel: Channel,
}

impl Custom {
    pub(super) const NAME: &'static str = "custom";

    /// A mechanism that is nothing but its channel.
    ///
    /// The order of an answer's outputs becomes that of their first appearance.
    pub fn new(channel: Channel) -> Result<Self> {
        Self::parse(&channel.to_cells_text())
    }

    pub(super) fn parse(arguments: &str) -> Result<Self> {
        let channel = Channel::parse_cells(arguments)?;
        let text = separated(arguments.split(',').map(str::trim), ", ");
        Ok(Self { text, channel })
    }

    /// The channel.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }
}

impl fmt::Display for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
