//! The driver's state: contexts, memory, modules, functions, events; codes and settings.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::{CStr, c_int, c_uint};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ptx_interpreter::{Memory, Program};

use crate::stream::{Graph, Stream};

pub type Code = c_uint;
/// The result of a call: nothing, or an error code.
pub type Answer<T = ()> = Result<T, Code>;

pub const SUCCESS: Code = 0;
pub const INVALID_VALUE: Code = 1;
const OUT_OF_MEMORY: Code = 2;
const NOT_INITIALIZED: Code = 3;
const INVALID_DEVICE: Code = 101;
const INVALID_CONTEXT: Code = 201;
const INVALID_PTX: Code = 218;
pub const INVALID_HANDLE: Code = 400;
const NOT_FOUND: Code = 500;
pub const NOT_READY: Code = 600;
pub const PEER_ACCESS_ALREADY_ENABLED: Code = 704;
pub const LAUNCH_FAILED: Code = 719;
pub const CAPTURE_UNSUPPORTED: Code = 900;
pub const CAPTURE_INVALIDATED: Code = 901;

/// The name of a code that this library returns.
pub fn error_name(code: Code) -> Option<&'static CStr> {
    Some(match code {
        SUCCESS => c"CUDA_SUCCESS",
        INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
        OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
        NOT_INITIALIZED => c"CUDA_ERROR_NOT_INITIALIZED",
        100 => c"CUDA_ERROR_NO_DEVICE",
        INVALID_DEVICE => c"CUDA_ERROR_INVALID_DEVICE",
        INVALID_CONTEXT => c"CUDA_ERROR_INVALID_CONTEXT",
        INVALID_PTX => c"CUDA_ERROR_INVALID_PTX",
        INVALID_HANDLE => c"CUDA_ERROR_INVALID_HANDLE",
        NOT_FOUND => c"CUDA_ERROR_NOT_FOUND",
        NOT_READY => c"CUDA_ERROR_NOT_READY",
        700 => c"CUDA_ERROR_ILLEGAL_ADDRESS",
        PEER_ACCESS_ALREADY_ENABLED => c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
        LAUNCH_FAILED => c"CUDA_ERROR_LAUNCH_FAILED",
        CAPTURE_UNSUPPORTED => c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        CAPTURE_INVALIDATED => c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
        _ => return None,
    })
}

/// Settings from the environment.
pub struct Settings {
    pub devices: c_int,
    pub version: c_int,
    pub memory: usize,
    capability: c_int,
    fail: Option<(String, u64, Code)>,
}

impl Settings {
    fn read() -> Settings {
        fn number<T: std::str::FromStr>(name: &str, default: T) -> T {
            std::env::var(name)
                .ok()
                .and_then(|text| text.parse().ok())
                .unwrap_or(default)
        }
        let fail = std::env::var("CUDA_DOUBLE_FAIL").ok().and_then(|text| {
            let mut parts = text.split(':');
            Some((
                parts.next()?.to_owned(),
                parts.next()?.parse().ok()?,
                parts.next()?.parse().ok()?,
            ))
        });
        Settings {
            devices: number("CUDA_DOUBLE_DEVICES", 1),
            version: number("CUDA_DOUBLE_VERSION", 12_040),
            memory: number("CUDA_DOUBLE_MEMORY", 1 << 32),
            capability: number("CUDA_DOUBLE_CAPABILITY", 75),
            fail,
        }
    }

    /// By `CUdevice_attribute`.
    pub fn attribute(&self, attribute: c_uint) -> Answer<c_int> {
        Ok(match attribute {
            1 => 1024,
            8 => 48 << 10,
            10 => 32,
            16 => 2,
            18 => 0,
            41 => 1,
            75 => self.capability / 10,
            76 => self.capability % 10,
            97 => 64 << 10,
            115 => 1,
            _ => return Err(INVALID_VALUE),
        })
    }
}

/// A loaded module.
pub struct Module {
    pub program: Program,
    parameters: usize,
}

/// A function of a module.
#[derive(Clone)]
pub struct Function {
    pub module: Arc<Module>,
    pub entry: String,
    dynamic_limit: u32,
}

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// Everything behind the handles.
pub struct State {
    pub settings: Settings,
    initialised: bool,
    calls: HashMap<String, u64>,
    /// References to each device's primary context.
    contexts: HashMap<usize, u32>,
    peers: HashSet<(usize, usize)>,
    pub memory: Memory,
    allocations: BTreeMap<u64, usize>,
    pinned: BTreeMap<usize, Box<[u8]>>,
    modules: HashMap<usize, Arc<Module>>,
    functions: HashMap<usize, Function>,
    pub streams: HashMap<usize, Stream>,
    pub graphs: HashMap<usize, Graph>,
    pub executables: HashMap<usize, Graph>,
    pub events: HashMap<usize, Option<Instant>>,
    /// The code of the fault after which the context is lost.
    pub lost: Option<Code>,
    next: usize,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Runs a call on the state of the process.
pub fn with_state<T>(call: impl FnOnce(&mut State) -> T) -> T {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    call(state.get_or_insert_with(State::new))
}

impl State {
    fn new() -> State {
        State {
            settings: Settings::read(),
            initialised: false,
            calls: HashMap::new(),
            contexts: HashMap::new(),
            peers: HashSet::new(),
            memory: Memory::new(),
            allocations: BTreeMap::new(),
            pinned: BTreeMap::new(),
            modules: HashMap::new(),
            functions: HashMap::new(),
            streams: HashMap::new(),
            graphs: HashMap::new(),
            executables: HashMap::new(),
            events: HashMap::new(),
            lost: None,
            next: 0x1000,
        }
    }

    /// Counts a call: fails it if the settings say so, or if nothing was initialised.
    pub fn count_call(&mut self, name: &str) -> Answer {
        let count = self.calls.entry(name.to_owned()).or_insert(0);
        *count += 1;
        if let Some((failing, at, code)) = &self.settings.fail
            && failing == name
            && at == count
        {
            if *code >= 700 && *code < 800 {
                self.lost = Some(*code);
            }
            return Err(*code);
        }
        let free = ["cuInit", "cuDriverGetVersion"].contains(&name);
        if self.initialised || free {
            Ok(())
        } else {
            Err(NOT_INITIALIZED)
        }
    }

    pub fn initialise(&mut self, flags: c_uint) -> Answer {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        self.initialised = true;
        if self.settings.devices == 0 {
            Err(100)
        } else {
            Ok(())
        }
    }

    pub fn handle(&mut self) -> usize {
        self.next += 0x10;
        self.next
    }

    pub fn device(&self, device: c_int) -> Answer {
        if (0..self.settings.devices).contains(&device) {
            Ok(())
        } else {
            Err(INVALID_DEVICE)
        }
    }

    /// A device's primary context.
    pub fn retain(&mut self, device: c_int) -> usize {
        let context = 0x100 + device as usize;
        *self.contexts.entry(context).or_insert(0) += 1;
        context
    }

    pub fn release(&mut self, device: c_int) -> Answer {
        let context = 0x100 + device as usize;
        let count = self.contexts.get_mut(&context).ok_or(INVALID_CONTEXT)?;
        *count -= 1;
        if *count == 0 {
            self.contexts.remove(&context);
        }
        Ok(())
    }

    pub fn context(&self, context: usize) -> Answer {
        if self.contexts.contains_key(&context) {
            Ok(())
        } else {
            Err(INVALID_CONTEXT)
        }
    }

    pub fn set_current(&mut self, context: usize) -> Answer {
        self.context(context)?;
        CURRENT.set(context);
        Ok(())
    }

    /// The calling thread's context, alive and not lost.
    pub fn current(&self) -> Answer<usize> {
        let context = CURRENT.get();
        self.context(context)?;
        match self.lost {
            Some(code) => Err(code),
            None => Ok(context),
        }
    }

    pub fn enable_peer(&mut self, peer: usize) -> Answer {
        self.context(peer)?;
        let context = self.current()?;
        if self.peers.insert((context, peer)) {
            Ok(())
        } else {
            Err(PEER_ACCESS_ALREADY_ENABLED)
        }
    }

    pub fn allocate(&mut self, bytes: usize) -> Answer<u64> {
        self.current()?;
        let used: usize = self.allocations.values().sum();
        if bytes == 0 {
            return Err(INVALID_VALUE);
        }
        if used + bytes > self.settings.memory {
            return Err(OUT_OF_MEMORY);
        }
        let address = self.memory.allocate_uninit(bytes);
        self.allocations.insert(address, bytes);
        Ok(address)
    }

    pub fn free_now(&mut self, address: u64) -> Answer {
        self.current()?;
        for stream in self.streams.keys().copied().collect::<Vec<_>>() {
            self.drain(stream)?;
        }
        self.free(address)
    }

    pub fn free(&mut self, address: u64) -> Answer {
        self.allocations.remove(&address).ok_or(INVALID_VALUE)?;
        self.memory.free(address).map_err(|_| INVALID_VALUE)
    }

    pub fn is_allocated(&self, address: u64) -> bool {
        self.allocations.contains_key(&address)
    }

    /// Whether device memory contains a whole range.
    pub fn on_device(&self, address: u64, bytes: usize) -> Answer {
        let found = self.allocations.range(..=address).next_back();
        let inside =
            found.is_some_and(|(start, size)| address + bytes as u64 <= start + *size as u64);
        if inside { Ok(()) } else { Err(INVALID_VALUE) }
    }

    pub fn pin(&mut self, bytes: usize) -> Answer<*mut u8> {
        self.current()?;
        let mut block = vec![0xa5_u8; bytes].into_boxed_slice();
        let start = block.as_mut_ptr();
        self.pinned.insert(start as usize, block);
        Ok(start)
    }

    pub fn unpin(&mut self, start: *mut u8) -> Answer {
        self.pinned
            .remove(&(start as usize))
            .map(|_| ())
            .ok_or(INVALID_VALUE)
    }

    /// Whether page-locked memory contains a whole range: asynchronous copies need it.
    pub fn is_pinned(&self, start: usize, bytes: usize) -> Answer {
        let found = self.pinned.range(..=start).next_back();
        let inside = found.is_some_and(|(first, block)| start + bytes <= first + block.len());
        if inside { Ok(()) } else { Err(INVALID_VALUE) }
    }

    pub fn load_module(&mut self, text: &str) -> Result<usize, (Code, String)> {
        self.current().map_err(|code| (code, String::new()))?;
        let program = Program::parse(text).map_err(|error| (INVALID_PTX, error.to_string()))?;
        let handle = self.handle();
        let parameters = text.matches(".param .u64").count();
        self.modules.insert(
            handle,
            Arc::new(Module {
                program,
                parameters,
            }),
        );
        Ok(handle)
    }

    pub fn unload(&mut self, module: usize) -> Answer {
        self.modules
            .remove(&module)
            .map(|_| ())
            .ok_or(INVALID_HANDLE)
    }

    pub fn function(&mut self, module: usize, name: &str) -> Answer<usize> {
        let module = self.modules.get(&module).ok_or(INVALID_HANDLE)?.clone();
        if !module.program.entries().any(|entry| entry == name) {
            return Err(NOT_FOUND);
        }
        let handle = self.handle();
        self.functions.insert(
            handle,
            Function {
                module,
                entry: name.to_owned(),
                dynamic_limit: 48 << 10,
            },
        );
        Ok(handle)
    }

    pub fn set_function_attribute(
        &mut self,
        function: usize,
        attribute: c_uint,
        value: c_int,
    ) -> Answer {
        let function = self.functions.get_mut(&function).ok_or(INVALID_HANDLE)?;
        if attribute != 8 || !(0..=64 << 10).contains(&value) {
            return Err(INVALID_VALUE);
        }
        function.dynamic_limit = value as u32;
        Ok(())
    }

    pub fn parameter_count(&self, function: usize) -> Answer<usize> {
        Ok(self
            .functions
            .get(&function)
            .ok_or(INVALID_HANDLE)?
            .module
            .parameters)
    }

    /// The function for a launch that its limits allow.
    pub fn launchable(
        &self,
        function: usize,
        block: [u32; 3],
        shared_bytes: u32,
    ) -> Answer<Function> {
        let function = self.functions.get(&function).ok_or(INVALID_HANDLE)?;
        let threads: u32 = block.iter().product();
        if threads == 0 || threads > 1024 || shared_bytes > function.dynamic_limit {
            return Err(INVALID_VALUE);
        }
        Ok(function.clone())
    }
}
