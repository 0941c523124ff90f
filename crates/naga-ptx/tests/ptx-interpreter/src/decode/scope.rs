//! Names: registers, symbols, labels and branch tables, by nested scope.

use crate::error::Error;
use crate::operation::Slot;
use crate::program::{Variable, window};
use crate::scalar::Scalar;
use crate::syntax::{self, Space};
use std::collections::HashMap;

/// Gap between variables, so that an overrun reaches no variable.
const GAP: usize = 256;

/// Variables of one state space at their addresses.
#[derive(Clone)]
pub(super) struct Layout {
    space: Space,
    pub variables: Vec<Variable>,
    end: u64,
}

impl Layout {
    pub fn new(space: Space) -> Layout {
        Layout {
            space,
            variables: Vec::new(),
            end: window(space),
        }
    }

    /// Kernel parameters are contiguous in the manual's layout; all other variables are separated
    /// by gaps.
    pub fn next_address(&self, alignment: usize) -> u64 {
        let is_packed = self.space == Space::Param || self.variables.is_empty();
        let gap = if is_packed { 0 } else { GAP as u64 };
        (self.end + gap).next_multiple_of(alignment as u64)
    }

    pub fn place(&mut self, variable: &syntax::Variable<'_>) -> u64 {
        let address = self.next_address(variable.alignment);
        self.end = address + variable.bytes as u64;
        self.variables.push(Variable {
            address,
            bytes: variable.bytes,
            initial: variable.initial.clone(),
        });
        address
    }

    /// Bytes without an initial value are zero in the spaces that support initial values.
    pub fn place_zeroed(&mut self, variable: &syntax::Variable<'_>) -> u64 {
        let address = self.place(variable);
        if let Some(last) = self.variables.last_mut() {
            last.initial.resize(variable.bytes, 0);
        }
        address
    }
}

#[derive(Clone, Default)]
struct Scope<'a> {
    parent: Option<usize>,
    singles: HashMap<&'a str, Scalar>,
    ranges: HashMap<&'a str, (u32, Scalar)>,
    slots: HashMap<&'a str, (Slot, Scalar)>,
    symbols: HashMap<&'a str, (Space, u64)>,
    labels: HashMap<&'a str, u32>,
    tables: HashMap<&'a str, Vec<&'a str>>,
}

/// All scopes of a module and one entry.
#[derive(Clone)]
pub(super) struct Scopes<'a> {
    scopes: Vec<Scope<'a>>,
    current: usize,
    /// The register of each slot.
    pub registers: Vec<String>,
}

impl Default for Scopes<'_> {
    fn default() -> Self {
        Scopes {
            scopes: vec![Scope::default()],
            current: 0,
            registers: Vec::new(),
        }
    }
}

impl<'a> Scopes<'a> {
    pub fn open(&mut self) {
        self.scopes.push(Scope {
            parent: Some(self.current),
            ..Scope::default()
        });
        self.current = self.scopes.len() - 1;
    }

    pub fn close(&mut self) {
        self.current = self.scopes[self.current].parent.unwrap_or(0);
    }

    pub fn current(&self) -> usize {
        self.current
    }

    fn chain(&self, from: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(from), |scope| self.scopes[*scope].parent)
    }

    pub fn declare_registers(
        &mut self,
        name: &'a str,
        count: Option<u32>,
        scalar: Scalar,
        line: u32,
    ) -> Result<(), Error> {
        let twice = || Error::typing(line, format!("register `{name}` is declared twice"));
        let scope = &mut self.scopes[self.current];
        let Some(count) = count else {
            let in_range = scope.declared(name).is_some();
            let is_symbol = scope.symbols.contains_key(name);
            scope.singles.insert(name, scalar);
            return if in_range || is_symbol {
                Err(twice())
            } else {
                Ok(())
            };
        };
        let overlaps = scope
            .singles
            .keys()
            .any(|single| splits(single).any(|(prefix, index)| prefix == name && index < count));
        let known = scope.ranges.insert(name, (count, scalar)).is_some();
        if overlaps || known {
            return Err(twice());
        }
        Ok(())
    }

    /// The slot and type of a register; assigns a slot at its first use.
    pub fn register(&mut self, name: &'a str) -> Option<(Slot, Scalar)> {
        let scopes = &self.scopes;
        let (scope, scalar) = self.chain(self.current).find_map(|index| {
            let scope = &scopes[index];
            scope
                .slots
                .get(name)
                .map(|(_, scalar)| *scalar)
                .or_else(|| scope.declared(name))
                .map(|scalar| (index, scalar))
        })?;
        if let Some(known) = self.scopes[scope].slots.get(name) {
            return Some(*known);
        }
        let slot = self.registers.len() as Slot;
        self.registers.push(name.to_owned());
        self.scopes[scope].slots.insert(name, (slot, scalar));
        Some((slot, scalar))
    }

    pub fn declare_symbol(
        &mut self,
        name: &'a str,
        space: Space,
        address: u64,
        line: u32,
    ) -> Result<(), Error> {
        let scope = &mut self.scopes[self.current];
        let known = scope.symbols.insert(name, (space, address)).is_some();
        if known || scope.declared(name).is_some() {
            return Err(Error::typing(line, format!("`{name}` is declared twice")));
        }
        Ok(())
    }

    /// Moves a module symbol, whose address depends on the entry.
    pub fn set_address(&mut self, name: &str, address: u64) {
        if let Some(symbol) = self.scopes[0].symbols.get_mut(name) {
            symbol.1 = address;
        }
    }

    pub fn symbol(&self, name: &str) -> Option<(Space, u64)> {
        self.chain(self.current)
            .find_map(|scope| self.scopes[scope].symbols.get(name).copied())
    }

    pub fn declare_label(&mut self, name: &'a str, target: u32, line: u32) -> Result<(), Error> {
        let scope = &mut self.scopes[self.current];
        if scope.labels.insert(name, target).is_some() {
            let message = format!("label `{name}` is declared twice");
            return Err(Error::typing(line, message));
        }
        Ok(())
    }

    /// The index of the instruction after a label visible from `scope`.
    pub fn label(&self, scope: usize, name: &str) -> Option<u32> {
        self.chain(scope)
            .find_map(|scope| self.scopes[scope].labels.get(name).copied())
    }

    pub fn declare_targets(
        &mut self,
        name: &'a str,
        targets: &[&'a str],
        line: u32,
    ) -> Result<(), Error> {
        let tables = &mut self.scopes[self.current].tables;
        if tables.insert(name, targets.to_vec()).is_some() {
            let message = format!("branch targets `{name}` are declared twice");
            return Err(Error::typing(line, message));
        }
        Ok(())
    }

    pub fn targets(&self, name: &str) -> Option<Vec<&'a str>> {
        self.chain(self.current)
            .find_map(|scope| self.scopes[scope].tables.get(name).cloned())
    }
}

impl Scope<'_> {
    fn declared(&self, name: &str) -> Option<Scalar> {
        self.singles.get(name).copied().or_else(|| {
            splits(name).find_map(|(prefix, index)| {
                let (count, scalar) = self.ranges.get(prefix)?;
                (index < *count).then_some(*scalar)
            })
        })
    }
}

/// Splits `%r12` into `%r` and 12, and into `%r1` and 2; a number with a leading zero names no
/// member of a range.
fn splits(name: &str) -> impl Iterator<Item = (&str, u32)> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    (1..=digits.min(9)).filter_map(move |length| {
        let (prefix, number) = name.split_at(name.len() - length);
        let is_canonical = length == 1 || !number.starts_with('0');
        let index = number.parse().ok()?;
        is_canonical.then_some((prefix, index))
    })
}
