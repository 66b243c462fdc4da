//! What the client has on its devices: no other pointer and no other handle reaches the HIP library.
//!
//! Handles are counted and never given twice, so that one that was destroyed is known as such.

use std::collections::{BTreeMap, HashMap};

use crate::hip::{
    INVALID_DEVICE_FUNCTION, INVALID_DEVICE_POINTER, INVALID_HANDLE, INVALID_VALUE, OUT_OF_MEMORY, Status,
};
use crate::rows::Rows;

/// The most allocations, streams, events and modules of a client together: each costs the worker's machine memory.
const MOST: usize = 1 << 20;
/// The first handle: 1 and 2 are streams that every process has.
const FIRST: u64 = 16;

/// Memory that copies may reach.
#[derive(Clone, Copy, Debug)]
struct Memory {
    bytes: u64,
    device: i32,
    /// The module whose variable this is; `None`: the client allocated it.
    module: Option<u64>,
}

/// What the client allocated, for the library to free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    pub pointer: u64,
    pub bytes: u64,
    pub device: i32,
}

/// An object of the library and the device that it is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    pub hip: u64,
    pub device: i32,
}

#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub hip: u64,
    module: u64,
    /// The length of the kernel's explicit arguments, by its code object.
    pub arguments: usize,
}

/// Where one kind of object is kept.
#[derive(Debug, Default)]
pub struct Objects {
    all: HashMap<u64, Object>,
}

impl Objects {
    /// # Errors
    /// The client has no such object.
    pub fn get(&self, handle: u64) -> Result<Object, Status> {
        self.all.get(&handle).copied().ok_or(INVALID_HANDLE)
    }

    /// # Errors
    /// The client has no such object.
    pub fn remove(&mut self, handle: u64) -> Result<Object, Status> {
        self.all.remove(&handle).ok_or(INVALID_HANDLE)
    }

    fn take_of(&mut self, device: i32) -> Vec<u64> {
        self.all.extract_if(|_, object| object.device == device).map(|(_, object)| object.hip).collect()
    }
}

#[derive(Debug)]
pub struct Tables {
    next: u64,
    memory: BTreeMap<u64, Memory>,
    pub streams: Objects,
    pub events: Objects,
    pub modules: Objects,
    /// `hipStreamPerThread` of each lane on each device.
    lanes: HashMap<(u16, i32), u64>,
    functions: HashMap<u64, Function>,
    /// The length of each kernel's explicit arguments, by module and name.
    arguments: HashMap<u64, HashMap<String, usize>>,
}

/// Everything of one device, for the library to free.
#[derive(Debug)]
pub struct Everything {
    pub memory: Vec<Allocated>,
    pub streams: Vec<u64>,
    pub events: Vec<u64>,
    pub modules: Vec<u64>,
}

impl Tables {
    pub fn new() -> Self {
        Self {
            next: FIRST,
            memory: BTreeMap::new(),
            streams: Objects::default(),
            events: Objects::default(),
            modules: Objects::default(),
            lanes: HashMap::new(),
            functions: HashMap::new(),
            arguments: HashMap::new(),
        }
    }

    /// # Errors
    /// The client has as many things as it may.
    pub fn has_room(&self) -> Result<(), Status> {
        let objects = [&self.streams, &self.events, &self.modules].map(|objects| objects.all.len());
        let all = self.memory.len() + objects.iter().sum::<usize>();
        if all < MOST { Ok(()) } else { Err(OUT_OF_MEMORY) }
    }

    fn handle(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    pub fn add_stream(&mut self, object: Object) -> u64 {
        let handle = self.handle();
        self.streams.all.insert(handle, object);
        handle
    }

    pub fn add_event(&mut self, object: Object) -> u64 {
        let handle = self.handle();
        self.events.all.insert(handle, object);
        handle
    }

    /// The stream of a lane on a device; `make` makes it, where it is the first.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn lane_stream(
        &mut self,
        lane: u16,
        device: i32,
        make: impl FnOnce() -> Result<u64, Status>,
    ) -> Result<u64, Status> {
        if let Some(stream) = self.lanes.get(&(lane, device)) {
            return Ok(*stream);
        }
        let stream = make()?;
        self.lanes.insert((lane, device), stream);
        Ok(stream)
    }

    /// All streams of a device, the null stream among them.
    pub fn streams_of(&self, device: i32) -> Vec<u64> {
        let lanes = self.lanes.iter().filter(|((_, on), _)| *on == device).map(|(_, stream)| *stream);
        let own = self.streams.all.values().filter(|stream| stream.device == device).map(|stream| stream.hip);
        std::iter::once(0).chain(lanes).chain(own).collect()
    }

    /// Adds a module, and the length of each of its kernels' arguments.
    pub fn add_module(&mut self, object: Object, arguments: HashMap<String, usize>) -> u64 {
        let handle = self.handle();
        self.arguments.insert(handle, arguments);
        self.modules.all.insert(handle, object);
        handle
    }

    /// Adds a kernel, if the module's code object names it. Its handle is that of an earlier call, if there was one.
    pub fn add_function(&mut self, module: u64, hip: u64, name: &str) -> Option<u64> {
        let arguments = *self.arguments.get(&module)?.get(name)?;
        let known = self.functions.iter().find(|(_, known)| known.hip == hip && known.module == module);
        if let Some((handle, _)) = known {
            return Some(*handle);
        }
        let handle = self.handle();
        self.functions.insert(handle, Function { hip, module, arguments });
        Some(handle)
    }

    /// # Errors
    /// The client has no such function.
    pub fn function(&self, handle: u64) -> Result<Function, Status> {
        self.functions.get(&handle).copied().ok_or(INVALID_DEVICE_FUNCTION)
    }

    pub fn add_memory(&mut self, Allocated { pointer, bytes, device }: Allocated) {
        self.memory.insert(pointer, Memory { bytes, device, module: None });
    }

    pub fn add_variable(&mut self, module: u64, pointer: u64, bytes: u64) {
        if let Ok(Object { device, .. }) = self.modules.get(module) {
            self.memory.entry(pointer).or_insert(Memory { bytes, device, module: Some(module) });
        }
    }

    /// Takes an allocation out.
    ///
    /// # Errors
    /// The pointer is not the begin of one of the client's allocations.
    pub fn remove_memory(&mut self, pointer: u64) -> Result<Allocated, Status> {
        match self.memory.get(&pointer) {
            Some(&Memory { module: None, device, bytes }) => {
                self.memory.remove(&pointer);
                Ok(Allocated { pointer, bytes, device })
            }
            _ => Err(INVALID_VALUE),
        }
    }

    /// Takes a module out, with its functions and variables.
    ///
    /// # Errors
    /// The client has no such module.
    pub fn remove_module(&mut self, handle: u64) -> Result<Object, Status> {
        let object = self.modules.remove(handle)?;
        self.arguments.remove(&handle);
        self.functions.retain(|_, function| function.module != handle);
        self.memory.retain(|_, memory| memory.module != Some(handle));
        Ok(object)
    }

    /// Checks that rows lie in one allocation of the client.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self, rows: &Rows) -> Result<(), Status> {
        let extent = rows.extent().ok_or(INVALID_VALUE)?;
        let (begin, memory) = self.memory.range(..=rows.pointer).next_back().ok_or(INVALID_DEVICE_POINTER)?;
        let within = rows.pointer - begin;
        if within <= memory.bytes && extent <= memory.bytes - within {
            Ok(())
        } else {
            Err(INVALID_DEVICE_POINTER)
        }
    }

    /// Takes everything of a device out.
    pub fn take_of(&mut self, device: i32) -> Everything {
        let handles: Vec<u64> = self
            .modules
            .all
            .iter()
            .filter(|(_, module)| module.device == device)
            .map(|(handle, _)| *handle)
            .collect();
        let modules = handles
            .iter()
            .filter_map(|handle| self.remove_module(*handle).ok())
            .map(|module| module.hip)
            .collect();
        let memory: Vec<u64> = self
            .memory
            .iter()
            .filter(|(_, memory)| memory.device == device)
            .map(|(pointer, _)| *pointer)
            .collect();
        let memory = memory.into_iter().filter_map(|pointer| self.remove_memory(pointer).ok()).collect();
        let lanes = self.lanes.extract_if(|(_, on), _| *on == device).map(|(_, stream)| stream);
        Everything {
            memory,
            modules,
            streams: lanes.chain(self.streams.take_of(device)).collect(),
            events: self.events.take_of(device),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(pointer: u64, bytes: u64) -> Rows {
        Rows::new(pointer, bytes, bytes, 1).unwrap()
    }

    #[test]
    fn a_range_must_lie_within_one_allocation() {
        let mut tables = Tables::new();
        for pointer in [1000, 1100] {
            tables.add_memory(Allocated { pointer, bytes: 100, device: 0 });
        }
        for (pointer, bytes, expected) in [
            (1000, 100, true),
            (1050, 50, true),
            (1050, 51, false),
            (999, 1, false),
            (1199, 1, true),
            (1199, 2, false),
            (1300, 0, false),
            (1200, 1, false),
        ] {
            assert_eq!(tables.check(&rows(pointer, bytes)).is_ok(), expected, "{pointer} {bytes}");
        }
        assert_eq!(tables.remove_memory(1001), Err(INVALID_VALUE));
        assert_eq!(tables.remove_memory(1000), Ok(Allocated { pointer: 1000, bytes: 100, device: 0 }));
        assert_eq!(tables.remove_memory(1000), Err(INVALID_VALUE));
        assert_eq!(tables.check(&rows(1000, 1)), Err(INVALID_DEVICE_POINTER));
    }

    #[test]
    fn a_module_that_is_unloaded_takes_its_functions_and_variables_along() {
        let mut tables = Tables::new();
        let module = tables.add_module(Object { hip: 5, device: 0 }, HashMap::from([("k".to_owned(), 8)]));
        assert_eq!(tables.add_function(module, 7, "l"), None, "the code object has no such kernel");
        let function = tables.add_function(module, 6, "k").unwrap();
        assert_eq!(tables.add_function(module, 6, "k"), Some(function));
        tables.add_variable(module, 5000, 8);
        assert_eq!(tables.remove_memory(5000), Err(INVALID_VALUE), "a variable is not freed");
        assert!(tables.check(&rows(5004, 4)).is_ok() && tables.function(function).is_ok());
        tables.remove_module(module).unwrap();
        assert!(tables.check(&rows(5004, 4)).is_err() && tables.function(function).is_err());
        assert_eq!(tables.remove_module(module), Err(INVALID_HANDLE));
    }
}
