//! The part of a benchmark's record that the page shows.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::bars::Bar;

#[derive(Deserialize)]
pub struct Record {
    pub date: String,
    pub commit: String,
    pub note: Option<String>,
    pub suites: Vec<String>,
    pub machine: Machine,
    pub device: Device,
    pub peers: Vec<Peer>,
    pub measured: Measured,
    pub rows: Vec<Row>,
}

#[derive(Deserialize)]
pub struct Machine {
    pub cpu: String,
    pub threads: u32,
    pub simd: String,
    pub system: String,
    pub load: Option<f64>,
}

#[derive(Deserialize)]
pub struct Device {
    pub id: String,
    pub name: String,
    pub driver: String,
    kind: String,
}

#[derive(Deserialize)]
pub struct Peer {
    pub name: String,
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    pub threads: Option<u32>,
    pub skipped: Option<String>,
}

#[derive(Deserialize)]
pub struct Measured {
    pub copy_bytes_per_s: f64,
    pub gemm_flop_per_s: f64,
}

#[derive(Deserialize)]
pub struct Row {
    pub key: String,
    pub median_s: f64,
    pub spread: f64,
    pub rate: f64,
    pub roofline: String,
    pub percent_of_roofline: f64,
    pub rounds_s: Vec<f64>,
    peers: Vec<PeerRow>,
}

#[derive(Deserialize)]
struct PeerRow {
    peer: String,
    ratio: Option<Ratio>,
    skipped: Option<String>,
}

#[derive(Deserialize)]
struct Ratio {
    median: f64,
    low: f64,
    high: f64,
}

/// Every record with its file's name, newest first.
pub fn all(root: &Path) -> Result<Vec<(String, Record)>, String> {
    let folder = root.join("bench/records");
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut records = Vec::new();
    for path in entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
    {
        let text =
            std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let record = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        records.push((
            path.file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            record,
        ));
    }
    records.sort_by(|(a, first): &(String, Record), (b, second)| {
        (&second.date, b).cmp(&(&first.date, a))
    });
    Ok(records)
}

impl Record {
    /// What two records share if they were measured on the same device of the same machine.
    pub fn machine_and_device(&self) -> String {
        let (machine, device) = (&self.machine, &self.device);
        format!(
            "{} (`{}`) on {}, {} threads, {}, {}",
            device.name, device.id, machine.cpu, machine.threads, machine.simd, machine.system
        )
    }
}

impl Device {
    /// Whether it is a GPU and not a software adapter.
    pub fn is_gpu(&self) -> bool {
        ["discrete", "integrated", "virtual"].contains(&self.kind.as_str())
    }
}

fn ratio_text(peer: &str, ratio: &Ratio) -> String {
    format!(
        "{peer} {:.2} [{:.2}, {:.2}]",
        ratio.median, ratio.low, ratio.high
    )
}

impl Row {
    /// The first two parts of the key: the operation, for any size.
    pub fn operation(&self) -> &str {
        self.key
            .match_indices('.')
            .nth(1)
            .map_or(self.key.as_str(), |(end, _)| &self.key[..end])
    }

    pub fn roofline_bar(&self) -> Bar {
        let percent = self.percent_of_roofline;
        Bar {
            name: self.key.clone(),
            value: percent,
            ends: None,
            text: format!("{percent:.0}"),
        }
    }

    pub fn peer_bars(&self) -> impl Iterator<Item = Bar> {
        self.peers.iter().filter_map(|theirs| {
            let ratio = theirs.ratio.as_ref()?;
            let text = format!("{} {:.2}", theirs.peer, ratio.median);
            Some(Bar {
                name: self.key.clone(),
                value: ratio.median,
                ends: Some((ratio.low, ratio.high)),
                text,
            })
        })
    }

    pub fn peer_names(&self) -> impl Iterator<Item = &str> {
        self.peers.iter().map(|theirs| theirs.peer.as_str())
    }

    /// The median ratio of each peer that was timed.
    pub fn ratios(&self) -> impl Iterator<Item = f64> {
        self.peer_ratios().map(|(_, ratio)| ratio)
    }

    /// The same with the peers' names.
    pub fn peer_ratios(&self) -> impl Iterator<Item = (&str, f64)> {
        self.peers
            .iter()
            .filter_map(|theirs| Some((theirs.peer.as_str(), theirs.ratio.as_ref()?.median)))
    }

    /// The lowest of them; infinite without any.
    pub fn lowest_ratio(&self) -> f64 {
        self.ratios().fold(f64::INFINITY, f64::min)
    }

    /// Whether a peer is faster.
    pub fn is_slower(&self) -> bool {
        self.lowest_ratio() < 1.0
    }

    /// The peers that are faster, each with its ratio.
    pub fn faster_peers(&self) -> impl Iterator<Item = (f64, String)> {
        let timed = self
            .peers
            .iter()
            .filter_map(|theirs| Some((theirs, theirs.ratio.as_ref()?)));
        timed
            .filter(|(_, ratio)| ratio.median < 1.0)
            .map(|(theirs, ratio)| (ratio.median, ratio_text(&theirs.peer, ratio)))
    }

    /// Every peer with its ratio, in bold where it is faster.
    pub fn peer_text(&self) -> String {
        let one = |theirs: &PeerRow| match &theirs.ratio {
            Some(ratio) if ratio.median < 1.0 => format!("**{}**", ratio_text(&theirs.peer, ratio)),
            Some(ratio) => ratio_text(&theirs.peer, ratio),
            None => format!(
                "{} skipped: {}",
                theirs.peer,
                theirs.skipped.as_deref().unwrap_or("not timed")
            ),
        };
        self.peers.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}
