//! Recordings of genome runs: one message per burst on `/spikes`, with the number of firings of
//! each area.

use std::io::{Seek, Write};

use serde_json::{Map, json};
use tectum::Result;

use super::unformattable;
use super::writer::Writer;
use tectum_spiking::genome::Genome;

const SPIKES_TOPIC: &str = "/spikes";
/// Bursts of a chunk: a killed run loses the last chunk.
const FLUSH_BURSTS: u32 = 64;

/// Writes a recording, burst by burst. Times are the genome's, one timestep per burst, from 0
/// before the first.
pub struct SpikeRecorder<W: Write + Seek> {
    writer: Writer<W>,
    channel_id: u16,
    /// Names of the areas as JSON.
    names: Vec<String>,
    timestep_ns: f64,
    json: Vec<u8>,
}

impl<W: Write + Seek> SpikeRecorder<W> {
    /// Begins a recording of a genome.
    ///
    /// # Errors
    /// `Io` if the file cannot be written.
    pub fn new(file: W, genome: &Genome) -> Result<Self> {
        let mut writer = Writer::new(file)?;
        let count = |description: String| json!({ "type": "integer", "description": description });
        let area = |area: &tectum_spiking::genome::Area| {
            (
                area.id.to_string(),
                count(format!(
                    "{}: firings of {} neurons",
                    area.name,
                    area.neurons.len()
                )),
            )
        };
        let areas = genome.areas().iter().map(area).collect::<Map<_, _>>();
        let schema = json!({
            "title": "tectum.Spikes",
            "type": "object",
            "properties": { "burst": count("number of the burst, from 1".to_owned()), "areas": { "type": "object", "properties": areas } }
        });
        let channel_id = writer.add_channel(SPIKES_TOPIC, "tectum.Spikes", &schema)?;
        let names = genome
            .areas()
            .iter()
            .map(|area| json!(area.id.to_string()).to_string())
            .collect();
        Ok(Self {
            writer,
            channel_id,
            names,
            timestep_ns: 1e9 * genome.physiology().timestep_s,
            json: Vec::with_capacity(512),
        })
    }

    /// Adds a burst with the firings of each area, in the genome's order.
    ///
    /// # Errors
    /// `Io` if the file cannot be written.
    pub fn push(&mut self, burst: u32, firings: &[u32]) -> Result<()> {
        self.json.clear();
        write!(self.json, "{{\"burst\":{burst},\"areas\":{{").map_err(unformattable)?;
        for (place, (name, count)) in self.names.iter().zip(firings).enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(self.json, "{comma}{name}:{count}").map_err(unformattable)?;
        }
        self.json.extend(b"}}");
        let time_ns = (f64::from(burst) * self.timestep_ns).round() as u64;
        self.writer
            .write(self.channel_id, burst, time_ns, &self.json)?;
        if burst.is_multiple_of(FLUSH_BURSTS) {
            self.writer.flush()
        } else {
            Ok(())
        }
    }

    /// Writes the index and returns the file.
    ///
    /// # Errors
    /// `Io` if the file cannot be written.
    pub fn finish(self) -> Result<W> {
        self.writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use serde_json::{Value, json};

    use super::SpikeRecorder;
    use tectum_spiking::genome::{Genome, GenomeOptions};

    #[test]
    fn every_burst_is_a_message_with_each_areas_firings() {
        let area = json!({"block_boundaries": [1, 1, 4], "mp_charge_accumulation": true});
        let text = json!({"version": "2.1", "blueprint": {"eye___": area, "___pwr": area}, "physiology": {"simulation_timestep": 0.025}}).to_string();
        let genome = Genome::parse(&text, &GenomeOptions::default()).expect("a genome");
        let write = || {
            let mut recorder =
                SpikeRecorder::new(Cursor::new(Vec::new()), &genome).expect("in memory");
            recorder.push(1, &[4, 0]).expect("in memory");
            recorder.push(2, &[4, 3]).expect("in memory");
            recorder.finish().expect("in memory").into_inner()
        };
        let bytes = write();
        assert_eq!(bytes, write());
        let messages = mcap::MessageStream::new(&bytes)
            .expect("an MCAP file")
            .collect::<Result<Vec<_>, _>>()
            .expect("whole");
        let read = messages
            .iter()
            .map(|message| {
                (
                    message.log_time,
                    serde_json::from_slice::<Value>(&message.data).expect("JSON"),
                )
            })
            .collect::<Vec<_>>();
        let expected = [
            (
                25_000_000,
                json!({"burst": 1, "areas": {"_power": 4, "eye___": 0}}),
            ),
            (
                50_000_000,
                json!({"burst": 2, "areas": {"_power": 4, "eye___": 3}}),
            ),
        ];
        assert_eq!(read, expected);
    }
}
