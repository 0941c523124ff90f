//! Comparing two records by ratios that do not depend on the machine's speed: ratios to peers and
//! to the roofline of the same run.

use serde::Serialize;
use tectum::{Error, Result};

use super::{BenchRecord, Interval, Row};

/// What a row of two records is compared by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// A peer of the same versions in both.
    Peer(String),
    /// The roofline.
    Roofline,
}

/// A row that became slower by more than both records' spread together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slowdown {
    /// The row.
    pub key: String,
    /// What it was compared by.
    pub basis: Basis,
    /// How many times slower: its interval lies above 1.
    pub factor: Interval,
    /// The ratio (peer's time over ours, or share of the roofline) in the old record.
    pub old: Interval,
    /// The same in the new one.
    pub new: Interval,
}

/// The comparison of two records.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Rows in both.
    pub compared: usize,
    /// Rows that became slower.
    pub slower: Vec<Slowdown>,
    /// Keys that only the old record has.
    pub gone: Vec<String>,
}

/// Compares two records row by row.
///
/// A row is compared by a peer that both records have in the same versions. Of several peers, the
/// one with the narrowest intervals is used; without a peer, the roofline. The row became slower if
/// the interval of the old ratio over the new one lies above 1, that is, if the intervals do not
/// overlap.
///
/// # Errors
/// `Invalid` if the records are of different devices or thread counts or have no row in common.
pub fn compare(old: &BenchRecord, new: &BenchRecord) -> Result<Comparison> {
    let place = |record: &BenchRecord| {
        format!(
            "{} ({} threads of {})",
            record.device.name, record.machine.threads, record.machine.cpu
        )
    };
    if place(old) != place(new) {
        return Err(Error::invalid(format!(
            "check: the old record is of {}, the new one of {}",
            place(old),
            place(new)
        )));
    }
    let of = |key: &str| new.rows.iter().find(|row| row.key == key);
    let (both, gone): (Vec<&Row>, Vec<&Row>) =
        old.rows.iter().partition(|row| of(&row.key).is_some());
    if both.is_empty() {
        return Err(Error::invalid("check: the records have no row in common"));
    }
    let peers = peers_of_both(old, new);
    let slower = both
        .iter()
        .filter_map(|row| slowdown(row, of(&row.key)?, &peers));
    Ok(Comparison {
        compared: both.len(),
        slower: slower.collect(),
        gone: gone.iter().map(|row| row.key.clone()).collect(),
    })
}

fn peers_of_both<'r>(old: &'r BenchRecord, new: &BenchRecord) -> Vec<&'r str> {
    let is_same = |peer: &&super::PeerBrief| new.peers.contains(peer) && peer.skipped.is_none();
    old.peers
        .iter()
        .filter(is_same)
        .map(|peer| peer.name.as_str())
        .collect()
}

fn slowdown(old: &Row, new: &Row, peers: &[&str]) -> Option<Slowdown> {
    let beside = |peer: &&str| {
        let (old, new) = (old.peer_ratio(peer)?, new.peer_ratio(peer)?);
        Some((Basis::Peer((*peer).to_owned()), old, new))
    };
    let width = |(_, old, new): &(Basis, Interval, Interval)| old.half_width() + new.half_width();
    let by_peer = peers
        .iter()
        .filter_map(beside)
        .min_by(|a, b| width(a).total_cmp(&width(b)));
    let (basis, old_ratio, new_ratio) =
        by_peer.unwrap_or_else(|| (Basis::Roofline, old.roofline_ratio(), new.roofline_ratio()));
    let factor = old_ratio.over(&new_ratio);
    (factor.low > 1.0).then(|| Slowdown {
        key: old.key.clone(),
        basis,
        factor,
        old: old_ratio,
        new: new_ratio,
    })
}
