//! A genome's areas: which neurons a cortical id and a coordinate are.
//!
//! A coordinate is a voxel, and each of its neurons gets the voxel's activation. Activations of one
//! voxel in a message add up; an activation of 0 is none, as in FEAGI.

use std::collections::BTreeMap;

use tectum::{Error, Result};
use tectum_spiking::genome::{Area, AreaRole, Genome};

use super::container::{Container, VOXELS};
use super::voxels::{self, AreaVoxels, CorticalId, Voxel, name};

/// Injections into one burst, by neuron.
pub(super) type Injections = Vec<(u32, f32)>;

/// The activation of a voxel in motor frames: a neuron fires, or it does not.
const FIRED: f32 = 1.0;

/// The areas that agents write and read.
pub(crate) struct Areas {
    areas: Vec<Area>,
    places: BTreeMap<CorticalId, usize>,
    max_injected: f32,
}

impl Areas {
    /// The areas of a genome whose network accepts injections up to a maximum.
    pub fn new(genome: &Genome, max_injected: f32) -> Self {
        let areas = genome.areas().to_vec();
        let ids = areas.iter().enumerate();
        let places = ids.map(|(place, area)| (area.id.bytes(), place)).collect();
        Self {
            areas,
            places,
            max_injected,
        }
    }

    /// The areas of a role.
    pub fn of_role(&self, role: AreaRole) -> impl Iterator<Item = &Area> {
        self.areas.iter().filter(move |area| area.role == role)
    }

    /// The maximum amount of an injection, either way.
    pub fn max_injected(&self) -> f32 {
        self.max_injected
    }

    /// The injections of a sensor frame, by neuron.
    ///
    /// # Errors
    /// `Data`, naming the area, for a structure of another type, as [`voxels::parse`], and for an
    /// area that is unknown or no input area, a coordinate outside of it, and an activation that is
    /// not finite or, as the sum of its voxel, beyond the network's maximum.
    pub fn injections(&self, frame: &Container<'_>) -> Result<Injections> {
        let mut sums = BTreeMap::new();
        for (place, structure) in frame.structures.iter().enumerate() {
            if structure.kind != VOXELS {
                return Err(Error::data(format!(
                    "structure {place} has the type {}; sensors send neuron voxels, type {VOXELS}",
                    structure.kind
                )));
            }
            for area in voxels::parse(structure.bytes)? {
                self.add(area, &mut sums)?;
            }
        }
        let mut injections = Vec::with_capacity(sums.len());
        for ((area, first), amount) in sums {
            let area = &self.areas[area];
            if amount.abs() > f64::from(self.max_injected) {
                return Err(Error::data(format!(
                    "area {}: voxel {:?} gets {amount}; the network accepts at most {} either way",
                    area.id,
                    area.voxel_of(first),
                    self.max_injected
                )));
            }
            injections
                .extend((first..first + area.per_voxel).map(|neuron| (neuron, amount as f32)));
        }
        Ok(injections)
    }

    /// Adds the voxels of an area to sums by area and first neuron of a voxel.
    fn add(&self, frame: AreaVoxels<'_>, sums: &mut BTreeMap<(usize, u32), f64>) -> Result<()> {
        let place = self.place(&frame.id)?;
        let area = &self.areas[place];
        for (at, amount) in frame.voxels() {
            if at.iter().zip(area.size).any(|(at, side)| *at >= side) {
                return Err(Error::data(format!(
                    "area {}: voxel {at:?} is outside of its {:?} voxels",
                    area.id, area.size
                )));
            }
            if !amount.is_finite() {
                return Err(Error::data(format!(
                    "area {}: the activation of voxel {at:?} is not finite",
                    area.id
                )));
            }
            if amount != 0.0 {
                *sums.entry((place, area.first_neuron(at))).or_default() += f64::from(amount);
            }
        }
        Ok(())
    }

    /// The place of the input area of an id.
    fn place(&self, id: &CorticalId) -> Result<usize> {
        // The released client pads names with spaces, genomes with underscores.
        let padded = || {
            let end = id.iter().rposition(|byte| !matches!(byte, b' ' | 0));
            let mut padded = *id;
            padded[end.map_or(0, |end| end + 1)..].fill(b'_');
            padded
        };
        let known = self.places.get(id).or_else(|| self.places.get(&padded()));
        let inputs = || {
            let ids = self
                .of_role(AreaRole::Input)
                .map(|area| area.id.to_string());
            ids.collect::<Vec<_>>().join(", ")
        };
        match known {
            Some(place) if self.areas[*place].role == AreaRole::Input => Ok(*place),
            Some(place) => Err(Error::data(format!(
                "area {}: its role is {}; sensors write to input areas: {}",
                self.areas[*place].id,
                self.areas[*place].role.name(),
                inputs()
            ))),
            None => Err(Error::data(format!(
                "area {}: the genome has no such area; its input areas: {}",
                name(id),
                inputs()
            ))),
        }
    }

    /// The structure of the output neurons that fired; none if none did.
    pub fn firings(&self, has_fired: impl Fn(u32) -> bool) -> Option<Vec<u8>> {
        let outputs = self.of_role(AreaRole::Output).map(|area| {
            let fired = area.neurons.clone().filter(|neuron| has_fired(*neuron));
            let voxels = fired.map(|neuron| (area.voxel_of(neuron), FIRED));
            (area.id.bytes(), voxels.collect::<Vec<Voxel>>())
        });
        let fired: Vec<_> = outputs.filter(|(_, voxels)| !voxels.is_empty()).collect();
        (!fired.is_empty()).then(|| voxels::write(&fired))
    }
}

/// The sum of the injections of several frames. A frame with which a sum would be beyond the
/// maximum is left out whole; returns how many are.
pub(super) fn combined(frames: Vec<Injections>, max_injected: f32) -> (Injections, u64) {
    let mut frames = frames.into_iter();
    let first = frames.next().unwrap_or_default();
    if frames.len() == 0 {
        return (first, 0);
    }
    let mut sums: BTreeMap<u32, f32> = first.into_iter().collect();
    let mut left_out = 0;
    for frame in frames {
        let sum = |neuron: &u32, amount: f32| sums.get(neuron).copied().unwrap_or(0.0) + amount;
        if frame
            .iter()
            .any(|(neuron, amount)| sum(neuron, *amount).abs() > max_injected)
        {
            left_out += 1;
            continue;
        }
        for (neuron, amount) in frame {
            *sums.entry(neuron).or_default() += amount;
        }
    }
    (sums.into_iter().collect(), left_out)
}

#[cfg(test)]
pub(crate) mod tests {
    use tectum_spiking::genome::GenomeOptions;

    use super::*;
    use crate::feagi::container::{AgentId, IdSize, Structure, write_json};

    /// An eye of 4 × 1 × 3 voxels of two neurons, an arm and a hidden area.
    pub(crate) fn areas() -> Areas {
        let area = |name: &str, group: &str, size: &str, per_voxel: u32| {
            format!(
                r#"{{"cortical_name": "{name}", "group_id": "{group}", "block_boundaries": {size},
                   "per_voxel_neuron_cnt": {per_voxel}, "mp_charge_accumulation": false}}"#
            )
        };
        let text = format!(
            r#"{{"version": "2.1", "blueprint": {{"iseen_": {}, "omove_": {}, "hidden": {}}}}}"#,
            area("eye", "IPU", "[4, 1, 3]", 2),
            area("arm", "OPU", "[2, 1, 1]", 1),
            area("hidden", "CUSTOM", "[1, 1, 1]", 1),
        );
        let genome = Genome::parse(&text, &GenomeOptions::default()).expect("valid");
        Areas::new(&genome, 16.0)
    }

    fn read(structures: &[Vec<u8>]) -> std::result::Result<Injections, String> {
        let structures = structures.iter();
        let frame = Container {
            counter: 0,
            agent: AgentId::blank(IdSize::Long),
            structures: structures
                .map(|bytes| Structure {
                    kind: bytes[0],
                    bytes,
                })
                .collect(),
        };
        areas()
            .injections(&frame)
            .map_err(|error| error.to_string())
    }

    fn frame(id: &[u8; 8], voxels: &[Voxel]) -> Vec<u8> {
        voxels::write(&[(*id, voxels.to_vec())])
    }

    #[test]
    fn the_neurons_of_a_voxel_get_the_sum_of_its_activations() {
        let eye = [
            ([0, 0, 1], 0.5),
            ([3, 0, 0], 1.0),
            ([0, 0, 1], 0.25),
            ([1, 0, 0], 0.0),
        ];
        let expected = Ok(vec![(2, 0.75), (3, 0.75), (18, 1.0), (19, 1.0)]);
        for id in [b"iseen___", b"iseen_  ", b"iseen_\0\0"] {
            assert_eq!(read(&[frame(id, &eye)]), expected);
        }
        let parts = eye.map(|voxel| frame(b"iseen___", &[voxel]));
        assert_eq!(read(&parts), expected);
        assert_eq!(read(&[]), Ok(vec![]));
    }

    #[test]
    fn what_does_not_fit_the_genome_names_the_area() {
        let eye = |voxel: Voxel| frame(b"iseen___", &[([0, 0, 0], 1.0), voxel]);
        for (structure, reason) in [
            (
                frame(b"iseem___", &[]),
                "area \"iseem___\": the genome has no such area; its input areas: iseen_",
            ),
            (
                frame(b"\xff\0\0\0\0\0\0\x01", &[]),
                "area ff00000000000001: the genome has no such area; its input areas: iseen_",
            ),
            (
                frame(b"omove___", &[]),
                "area omove_: its role is output; sensors write to input areas: iseen_",
            ),
            (
                eye(([4, 0, 0], 1.0)),
                "area iseen_: voxel [4, 0, 0] is outside of its [4, 1, 3] voxels",
            ),
            (
                eye(([0, 0, u32::MAX], 1.0)),
                "area iseen_: voxel [0, 0, 4294967295] is outside of its [4, 1, 3] voxels",
            ),
            (
                eye(([1, 0, 0], f32::NAN)),
                "area iseen_: the activation of voxel [1, 0, 0] is not finite",
            ),
            (
                eye(([1, 0, 2], f32::NEG_INFINITY)),
                "area iseen_: the activation of voxel [1, 0, 2] is not finite",
            ),
            (
                eye(([0, 0, 0], 15.5)),
                "area iseen_: voxel [0, 0, 0] gets 16.5; the network accepts at most 16 either way",
            ),
            (
                write_json("{}"),
                "structure 0 has the type 1; sensors send neuron voxels, type 11",
            ),
        ] {
            assert_eq!(read(&[structure]), Err(reason.to_owned()));
        }
    }

    #[test]
    fn firings_are_the_voxels_of_output_areas() {
        let areas = areas();
        assert_eq!(areas.firings(|_| false), None);
        // The arm's neurons follow the 24 of the eye.
        let structure = areas.firings(|neuron| neuron == 25).expect("one fired");
        assert_eq!(structure, frame(b"omove___", &[([1, 0, 0], 1.0)]));
        assert_eq!(areas.firings(|neuron| neuron < 24), None);
    }

    #[test]
    fn frames_add_up_and_one_beyond_the_maximum_is_left_out_whole() {
        let frames = vec![
            vec![(1, 1.0), (2, 2.0)],
            vec![(0, 1.0), (2, 15.0)],
            vec![(2, 1.0), (5, 0.5)],
        ];
        let expected = vec![(1, 1.0), (2, 3.0), (5, 0.5)];
        assert_eq!(combined(frames, 16.0), (expected, 1));
        assert_eq!(combined(vec![], 16.0), (vec![], 0));
    }
}
