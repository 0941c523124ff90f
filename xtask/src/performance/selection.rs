//! Which rows are shown: of each machine those of its newest record that has them.

use std::collections::BTreeSet;

use super::record::{Record, Row};

/// A suite with what its page shows.
pub struct Suite<'r> {
    pub name: &'r str,
    /// By machine, that of the newest record first.
    pub machines: Vec<Machine<'r>>,
    /// Names of the records of which no row is shown, newest first.
    pub older: Vec<&'r str>,
}

pub struct Machine<'r> {
    /// Processor, device and system.
    pub name: String,
    /// Newest first.
    pub records: Vec<Shown<'r>>,
}

/// A record and those of its rows that no newer record of the same machine has.
pub struct Shown<'r> {
    pub name: &'r str,
    pub record: &'r Record,
    pub rows: Vec<&'r Row>,
}

/// Every suite of the records, by name. Records are given newest first.
pub fn suites(records: &[(String, Record)]) -> Vec<Suite<'_>> {
    let names: BTreeSet<&str> = records
        .iter()
        .flat_map(|(_, record)| record.suites.iter().map(String::as_str))
        .collect();
    names.into_iter().map(|name| suite(name, records)).collect()
}

fn suite<'r>(name: &'r str, records: &'r [(String, Record)]) -> Suite<'r> {
    let mut suite = Suite {
        name,
        machines: Vec::new(),
        older: Vec::new(),
    };
    let mut seen = BTreeSet::new();
    for (file, record) in records
        .iter()
        .filter(|(_, record)| record.suites.iter().any(|one| one == name))
    {
        let machine = record.machine_and_device();
        let of_suite = record
            .rows
            .iter()
            .filter(|row| row.key.split('.').next() == Some(name));
        let rows: Vec<&Row> = of_suite
            .filter(|row| seen.insert((machine.clone(), &row.key)))
            .collect();
        if rows.is_empty() {
            suite.older.push(file);
            continue;
        }
        let shown = Shown {
            name: file,
            record,
            rows,
        };
        match suite
            .machines
            .iter_mut()
            .find(|known| known.name == machine)
        {
            Some(known) => known.records.push(shown),
            None => suite.machines.push(Machine {
                name: machine,
                records: vec![shown],
            }),
        }
    }
    suite
}

impl<'r> Machine<'r> {
    pub fn rows(&self) -> impl Iterator<Item = &'r Row> {
        self.records
            .iter()
            .flat_map(|shown| shown.rows.iter().copied())
    }
}
