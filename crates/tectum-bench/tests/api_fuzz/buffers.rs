//! Buffers of every type on two devices, and the pools that allocate them.

use std::cell::RefCell;
use std::rc::Rc;

use tectum::{Buffer, CopyPath, DType, Element, ErrorKind, PoolCaps, PoolStats, SharedState};

use super::memory::{Memory, Word, compare, zeros};
use super::operation::product;
use super::plans::{elements, typed};
use super::world::{LIVE_BYTES, Verdict, World, caught, judged};

/// A buffer of one of the types.
pub enum Typed {
    F32(Buffer<f32>),
    U32(Buffer<u32>),
    I32(Buffer<i32>),
    F64(Buffer<f64>),
}

/// A buffer and its contents.
pub struct Held {
    pub id: u64,
    pub buffer: Typed,
    pub memory: Memory,
    pub device: usize,
    pub len: usize,
    pub dtype: DType,
}

/// Wraps a typed buffer.
pub trait Wrap: Element {
    fn wrap(buffer: Buffer<Self>) -> Typed;
    fn unwrap(typed: &Typed) -> Option<&Buffer<Self>>;
}

macro_rules! wrap {
    ($($T:ident $Variant:ident),*) => {$(
        impl Wrap for $T {
            fn wrap(buffer: Buffer<Self>) -> Typed {
                Typed::$Variant(buffer)
            }
            fn unwrap(typed: &Typed) -> Option<&Buffer<Self>> {
                if let Typed::$Variant(buffer) = typed { Some(buffer) } else { None }
            }
        }
    )*};
}
wrap!(f32 F32, u32 U32, i32 I32, f64 F64);

/// A call on a buffer of any type.
macro_rules! each {
    ($held:expr, $buffer:ident => $call:expr) => {
        match &$held.buffer {
            Typed::F32($buffer) => $call,
            Typed::U32($buffer) => $call,
            Typed::I32($buffer) => $call,
            Typed::F64($buffer) => $call,
        }
    };
}

impl Held {
    pub fn state(&self) -> &SharedState {
        each!(self, buffer => buffer.as_state())
    }
}

impl World {
    pub fn hold(&mut self, buffer: Typed, memory: Memory, device: usize) {
        let (len, dtype) = match &buffer {
            Typed::F32(buffer) => (buffer.len(), DType::F32),
            Typed::U32(buffer) => (buffer.len(), DType::U32),
            Typed::I32(buffer) => (buffer.len(), DType::I32),
            Typed::F64(buffer) => (buffer.len(), DType::F64),
        };
        if self.buffers.len() == 12 {
            let place = self.below(12);
            self.buffers.swap_remove(place);
        }
        self.buffers.push(Held {
            id: self.calls,
            buffer,
            memory,
            device,
            len,
            dtype,
        });
    }

    /// One call on a buffer or a pool.
    pub fn use_buffers(&mut self) -> Verdict {
        let count = self.buffers.len();
        let place = self.below(count);
        match self.random.below(10) {
            _ if count == 0 => self.new_buffer(),
            0 | 1 => self.new_buffer(),
            2 => self.buffer_from(),
            3 | 4 => self.write_buffer(place),
            5 | 6 => self.read_buffer(place),
            7 => self.copy_buffer(place),
            8 => self.clone_or_drop(place),
            _ => self.use_pool(),
        }
    }

    fn new_buffer(&mut self) -> Verdict {
        let (device, dtype) = (usize::from(self.chance(4)), self.dtype());
        let len = if self.chance(8) {
            self.extreme()
        } else {
            self.size()
        };
        let is_small = product(&[len, dtype.bytes()]) <= u128::from(LIVE_BYTES) / 8;
        self.note(format!(
            "buffer{} = buffer::<{dtype:?}>({len}) on {:?}",
            self.calls + 1,
            self.devices[device]
        ));
        let owner = self.devices[device].clone();
        let result = caught(|| typed!(dtype, T => owner.buffer::<T>(len).map(T::wrap)))
            .map_err(|panic| format!("panicked: {panic}"))?;
        if let Some(buffer) = judged(result, (!is_small).then_some(ErrorKind::OutOfMemory))? {
            self.hold(buffer, zeros(len * dtype.bytes() / 4), device);
        }
        self.check_pools()
    }

    fn buffer_from(&mut self) -> Verdict {
        let (device, dtype, len) = (usize::from(self.chance(4)), self.dtype(), self.size());
        let data = self.data(dtype, len);
        self.note(format!(
            "buffer{} = buffer_from::<{dtype:?}>({data:x?}) on {:?}",
            self.calls + 1,
            self.devices[device]
        ));
        let owner = self.devices[device].clone();
        let result =
            caught(|| typed!(dtype, T => owner.buffer_from::<T>(&elements(&data)).map(T::wrap)))
                .map_err(|panic| format!("panicked: {panic}"))?;
        if let Some(buffer) = judged(result, None)? {
            self.hold(
                buffer,
                Rc::new(RefCell::new(data.into_iter().map(Word::Exact).collect())),
                device,
            );
        }
        self.check_pools()
    }

    fn write_buffer(&mut self, place: usize) -> Verdict {
        let Held { id, len, dtype, .. } = self.buffers[place];
        let given = if self.chance(6) { self.size() } else { len };
        let data = self.data(dtype, given);
        self.note(format!("buffer{id}: write {data:x?}"));
        let held = &self.buffers[place];
        let result = caught(|| each!(held, buffer => buffer.write(&elements(&data))))
            .map_err(|panic| format!("panicked: {panic}"))?;
        if judged(result, (given != len).then_some(ErrorKind::Invalid))?.is_some() {
            *self.buffers[place].memory.borrow_mut() = data.into_iter().map(Word::Exact).collect();
        }
        Ok(())
    }

    fn read_buffer(&mut self, place: usize) -> Verdict {
        self.note(format!("buffer{}: read", self.buffers[place].id));
        let held = &self.buffers[place];
        let read = || each!(held, buffer => buffer.read().map(|data| (buffer.len(), buffer.is_empty(), bytemuck::cast_slice::<_, u32>(&data).to_vec())));
        let result = caught(read).map_err(|panic| format!("panicked: {panic}"))?;
        let Some((len, is_empty, found)) = judged(result, None)? else {
            return Ok(());
        };
        if (len, is_empty) != (held.len, held.len == 0) {
            return Err(format!("has {len} elements"));
        }
        // The null device stores nothing: its reads give zeros.
        let known = if held.device == 0 {
            held.memory.borrow().clone()
        } else {
            vec![Word::Exact(0); found.len()]
        };
        compare(&known, &found)
    }

    fn copy_buffer(&mut self, from: usize) -> Verdict {
        let dtype = self.buffers[from].dtype;
        let others: Vec<usize> = (0..self.buffers.len())
            .filter(|&place| self.buffers[place].dtype == dtype)
            .collect();
        let fitting: Vec<usize> = others
            .iter()
            .copied()
            .filter(|&place| self.buffers[place].len == self.buffers[from].len)
            .collect();
        let to = if self.chance(4) {
            others[self.below(others.len())]
        } else {
            fitting[self.below(fitting.len())]
        };
        self.note(format!(
            "buffer{}: copy_to buffer{}",
            self.buffers[from].id, self.buffers[to].id
        ));
        let (source, target) = (&self.buffers[from], &self.buffers[to]);
        let copy = || typed!(dtype, T => T::unwrap(&source.buffer).zip(T::unwrap(&target.buffer)).map(|(source, target)| source.copy_to(target)));
        let result = caught(copy)
            .map_err(|panic| format!("panicked: {panic}"))?
            .ok_or("types")?;
        let Some(path) = judged(
            result,
            (source.len != target.len).then_some(ErrorKind::Invalid),
        )?
        else {
            return Ok(());
        };
        if path == CopyPath::Peer {
            return Err("a peer copy between devices that are none".to_owned());
        }
        if !Rc::ptr_eq(&source.memory, &target.memory) {
            let words = if source.device == 0 {
                source.memory.borrow().clone()
            } else {
                vec![Word::Exact(0); source.memory.borrow().len()]
            };
            *target.memory.borrow_mut() = words;
        }
        Ok(())
    }

    fn clone_or_drop(&mut self, place: usize) -> Verdict {
        let Held { id, device, .. } = self.buffers[place];
        if self.chance(2) {
            self.note(format!("buffer{id}: drop"));
            self.buffers.swap_remove(place);
            return self.check_pools();
        }
        self.note(format!(
            "buffer{} = buffer{id}: clone, device, {{:?}}",
            self.calls + 1
        ));
        let held = &self.buffers[place];
        let same = each!(held, buffer => std::ptr::eq(buffer.device().info(), self.devices[device].info()) && !format!("{buffer:?}").is_empty());
        let (memory, buffer) = (
            held.memory.clone(),
            typed!(held.dtype, T => T::unwrap(&held.buffer).cloned().map(T::wrap)),
        );
        if !same {
            return Err("names another device".to_owned());
        }
        if let Some(buffer) = buffer {
            self.hold(buffer, memory, device);
        }
        Ok(())
    }

    /// Calls on the pool that belongs only to this sequence, and trims of the other.
    fn use_pool(&mut self) -> Verdict {
        match self.random.below(4) {
            0 => {
                let device = usize::from(self.chance(2));
                self.note(format!("pool of {:?}: trim", self.devices[device]));
                self.devices[device].pool().trim();
            }
            1 => {
                let caps = PoolCaps {
                    pooled_bytes: [0, 1024, 1 << 20, u64::MAX][self.below(4)],
                    pooled_count: [0, 1, 8, usize::MAX][self.below(4)],
                    live_bytes: LIVE_BYTES,
                };
                self.note(format!("pool of null: set_caps {caps:?}"));
                self.devices[1].pool().set_caps(caps);
                let stats = self.devices[1].pool().stats();
                if stats.pooled_bytes > caps.pooled_bytes
                    || stats.pooled_count > caps.pooled_count as u64
                {
                    return Err(format!("keeps {stats:?}"));
                }
            }
            _ => self.note("pools: stats"),
        }
        self.check_pools()
    }

    fn check_pools(&self) -> Verdict {
        for device in &self.devices {
            let stats: PoolStats = device.pool().stats();
            if stats.live_bytes > LIVE_BYTES
                || stats.peak_bytes < stats.live_bytes
                || (stats.pooled_count == 0) != (stats.pooled_bytes == 0)
            {
                return Err(format!("{device:?} holds {stats:?}"));
            }
        }
        // Only this sequence has memory of the null device: every block belongs to a buffer, an
        // executable, or both.
        let held = self.buffers.iter().filter(|held| held.device == 1).count();
        let stats = self.devices[1].pool().stats();
        let is_alone = self.runs.iter().all(|run| run.device == 0)
            && self.queued.is_empty()
            && self.graphs.is_empty();
        if is_alone && stats.live_count > held as u64 {
            return Err(format!("{held} buffers are held, {stats:?}"));
        }
        Ok(())
    }
}
