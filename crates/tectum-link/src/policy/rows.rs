//! The rows of a chunk of actions, one for each period.

use tectum::Result;
use tectum::snapshot::{Array as Numbers, Snapshot};
use tectum_control::message::{Array, ElementType};

/// The last chunk, and the actions that were used.
#[derive(Debug)]
pub(super) struct Rows {
    /// Numbers of a row.
    width: usize,
    rows: Vec<f32>,
    /// The number of the action that its first row is for.
    start: u64,
    /// Actions used.
    used: u64,
    /// Rows after which the next chunk is requested, if it is stated.
    stated: Option<u64>,
}

impl Rows {
    pub fn new(width: usize, stated: Option<u64>) -> Self {
        Self {
            width,
            rows: Vec::new(),
            start: 0,
            used: 0,
            stated,
        }
    }

    /// Actions used.
    pub fn used(&self) -> u64 {
        self.used
    }

    fn len(&self) -> u64 {
        (self.rows.len() / self.width.max(1)) as u64
    }

    /// Takes a chunk whose first row is for the action with the number `start`; the reason for one
    /// that does not fit.
    pub fn push(&mut self, start: u64, actions: &Array) -> std::result::Result<(), String> {
        let is_number = matches!(actions.element, ElementType::F32 | ElementType::F64);
        let width = self.width;
        let is_chunk = match actions.shape[..] {
            [rows, numbers] => rows > 0 && numbers == width,
            [numbers] => numbers == width,
            _ => false,
        };
        if !is_number || !is_chunk {
            return Err(format!(
                "its actions have the shape {:?} of {}, needs rows of {width} numbers of float32",
                actions.shape,
                actions.element.name()
            ));
        }
        self.rows.clear();
        actions.append_to(&mut self.rows);
        self.start = start;
        Ok(())
    }

    /// Whether the next chunk is to be requested.
    pub fn is_request_due(&self) -> bool {
        let len = self.len();
        let rows = self.stated.unwrap_or(len.div_ceil(2)).min(len);
        self.used.saturating_sub(self.start) >= rows
    }

    /// Writes the action of this tick; false without a row for it.
    pub fn next(&mut self, action: &mut [f32]) -> bool {
        let row = self.used.saturating_sub(self.start);
        if row >= self.len() {
            return false;
        }
        let begin = row as usize * self.width;
        action.copy_from_slice(&self.rows[begin..begin + self.width]);
        self.used += 1;
        true
    }

    /// Restarts for an episode.
    pub fn clear(&mut self) {
        self.rows.clear();
        (self.start, self.used) = (0, 0);
    }

    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        snapshot.insert("rows", Numbers::F32(self.rows.clone()));
        let counts = vec![self.start, self.used, self.rows.len() as u64];
        snapshot.insert("row_counts", Numbers::U64(counts));
        snapshot
    }

    /// # Errors
    /// `Data` if an array is missing or has a different length.
    pub fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        let counts = snapshot.u64("row_counts", 3)?;
        let rows = snapshot.f32("rows", counts[2] as usize)?;
        self.rows = rows.to_vec();
        (self.start, self.used) = (counts[0], counts[1]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(first: f32, rows: usize) -> Array {
        let numbers: Vec<f32> = (0..rows).map(|row| first + row as f32).collect();
        Array {
            shape: vec![rows, 1],
            ..Array::of_f32(&numbers)
        }
    }

    /// The actions of some ticks; none where a tick has no row.
    fn next(rows: &mut Rows, ticks: usize) -> Vec<Option<f32>> {
        let mut tick = || {
            let mut action = [f32::NAN];
            rows.next(&mut action).then_some(action[0])
        };
        (0..ticks).map(|_| tick()).collect()
    }

    #[test]
    fn rows_of_ticks_that_passed_are_skipped_and_ticks_without_one_skip_none() {
        let mut rows = Rows::new(1, None);
        assert!(rows.is_request_due());
        rows.push(0, &chunk(10.0, 4)).expect("it fits");
        assert_eq!(next(&mut rows, 2), [Some(10.0), Some(11.0)]);
        assert!(rows.is_request_due(), "half of them");
        // Requested now, for the action 2; it arrives after one more tick.
        assert_eq!((rows.used(), next(&mut rows, 1)), (2, vec![Some(12.0)]));
        rows.push(2, &chunk(20.0, 4)).expect("it fits");
        assert_eq!(
            next(&mut rows, 4),
            [Some(21.0), Some(22.0), Some(23.0), None]
        );
        // Ticks without a row.
        assert_eq!((next(&mut rows, 3), rows.used()), (vec![None; 3], 6));
        rows.push(6, &chunk(30.0, 2)).expect("it fits");
        assert_eq!(next(&mut rows, 1), [Some(30.0)]);
        let saved = rows.snapshot();
        let mut again = Rows::new(1, None);
        again.restore(&saved).expect("its own");
        assert_eq!(next(&mut again, 2), next(&mut rows, 2));
        rows.clear();
        assert_eq!((rows.used(), rows.is_request_due()), (0, true));
    }

    #[test]
    fn the_next_chunk_is_requested_after_the_stated_rows() {
        for (stated, due) in [(Some(1), 1), (Some(3), 3), (Some(9), 4), (None, 2)] {
            let mut rows = Rows::new(1, stated);
            rows.push(0, &chunk(0.0, 4)).expect("it fits");
            let ticks = (0..).find(|_| rows.is_request_due() || next(&mut rows, 1)[0].is_none());
            assert_eq!(
                (ticks, rows.used()),
                (Some(due as usize), due),
                "{stated:?}"
            );
        }
    }

    #[test]
    fn chunks_of_another_width_or_type_are_refused() {
        let mut rows = Rows::new(2, None);
        let flat = Array::of_f64(&[1.0, 2.0]);
        assert!(rows.push(0, &flat).is_ok(), "one row");
        for array in [
            chunk(0.0, 2),
            Array {
                shape: vec![0, 2],
                ..Array::of_f32(&[])
            },
            Array {
                element: ElementType::U8,
                shape: vec![1, 2],
                data: vec![0, 1],
            },
        ] {
            assert!(rows.push(0, &array).is_err(), "{array:?}");
        }
    }
}
