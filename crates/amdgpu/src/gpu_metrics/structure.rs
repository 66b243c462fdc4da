//! A C structure as a list of fields; where each lies follows from C's rules of alignment.

use super::integer::{Integer, Values};

/// `struct metrics_table_header`: the structure's size, format and content revision.
pub const HEADER_SIZE: usize = 4;
const HEADER_ALIGNMENT: usize = 2;

/// The layout of one version of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Structure(pub(super) &'static [Group]);

/// Fields that follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    Plain(&'static [Member]),
    /// An array of structures of these fields.
    Array(u32, &'static [Member]),
}

/// A field as the header declares it; a plain one has the count 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) integer: Integer,
    pub(super) count: u32,
}

/// `U16 a, b[8]; U64 c;`: plain fields.
macro_rules! plain {
    ($($integer:ident $($name:ident $([$count:literal])?),+;)+) => {
        $crate::gpu_metrics::structure::Group::Plain(&[$($($crate::gpu_metrics::structure::Member {
            name: stringify!($name),
            integer: $crate::gpu_metrics::integer::Integer::$integer,
            count: 1 $(* $count)?,
        }),+),+])
    };
}
pub(super) use plain;

/// `xcp_stats[8] { U16 a, b[8]; }`: an array of structures, whose fields are named `xcp_stats.a`.
macro_rules! array {
    ($array:ident[$length:literal] { $($integer:ident $($name:ident $([$count:literal])?),+;)+ }) => {
        $crate::gpu_metrics::structure::Group::Array($length, &[$($($crate::gpu_metrics::structure::Member {
            name: concat!(stringify!($array), ".", stringify!($name)),
            integer: $crate::gpu_metrics::integer::Integer::$integer,
            count: 1 $(* $count)?,
        }),+),+])
    };
}
pub(super) use array;

/// A field and where its values lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The name in C; a field of an array of structures is named `ARRAY.FIELD`.
    pub name: &'static str,
    pub integer: Integer,
    /// How many values the field has; in an array of structures, how many in each structure.
    pub count: u32,
    /// The bytes from the header's first byte to the field's first value.
    pub offset: usize,
    /// The length of the array of structures, and `stride` the bytes of each; 1 and 0 for a plain field.
    pub structures: u32,
    pub stride: usize,
}

impl Field {
    /// Each value's place (structure * count + index in the structure) and its offset.
    pub fn places(self) -> impl Iterator<Item = (u32, usize)> {
        let one = move |structure: u32, index: u32| {
            let offset = structure as usize * self.stride + index as usize * self.integer.size();
            (structure * self.count + index, self.offset + offset)
        };
        (0..self.structures)
            .flat_map(move |structure| (0..self.count).map(move |index| one(structure, index)))
    }

    /// The header's paddings are fields that mean nothing.
    #[must_use]
    pub fn is_padding(&self) -> bool {
        self.name.starts_with("padding")
    }
}

impl Structure {
    /// The fields in the header's order, without `common_header`.
    #[must_use]
    pub fn fields(self) -> Vec<Field> {
        self.lay_out().0
    }

    /// The structure's `sizeof` in C.
    #[must_use]
    pub fn size(self) -> usize {
        self.lay_out().1
    }

    /// A structure without the arrays of structures at its end: some driver writes a version 1.6 of 312 bytes, which
    /// ends where Linux 7.3's has `xcp_stats`.
    #[must_use]
    pub fn without_arrays(self) -> Self {
        let is_plain = |group: &&Group| matches!(group, Group::Plain(_));
        Self(self.0.get(..self.0.iter().take_while(is_plain).count()).unwrap_or(self.0))
    }

    fn lay_out(self) -> (Vec<Field>, usize) {
        let mut fields = Vec::new();
        let (mut end, mut alignment) = (HEADER_SIZE, HEADER_ALIGNMENT);
        for group in self.0 {
            let (structures, members) = match *group {
                Group::Plain(members) => (1, members),
                Group::Array(structures, members) => {
                    end = end.next_multiple_of(alignment_of(members));
                    (structures, members)
                }
            };
            let (first, start) = (fields.len(), end);
            for &Member { name, integer, count } in members {
                let offset = end.next_multiple_of(integer.size());
                end = offset + integer.size() * count as usize;
                fields.push(Field { name, integer, count, offset, structures, stride: 0 });
            }
            if let Group::Array(..) = group {
                let stride = (end - start).next_multiple_of(alignment_of(members));
                fields.iter_mut().skip(first).for_each(|field| field.stride = stride);
                end = start + stride * structures as usize;
            }
            alignment = alignment.max(alignment_of(members));
        }
        (fields, end.next_multiple_of(alignment))
    }

    /// The values that are there; `bytes` is the whole structure.
    pub(super) fn decode(self, bytes: &[u8]) -> Vec<Values> {
        let values = |field: Field| -> Vec<(u32, u64)> {
            let read = |offset| bytes.get(offset..).and_then(|bytes| field.integer.read(bytes));
            field.places().filter_map(|(place, offset)| Some((place, read(offset)?))).collect()
        };
        let fields = self.fields().into_iter().filter(|field| !field.is_padding());
        fields.map(|field| (field.name, values(field))).filter(|(_, values)| !values.is_empty()).collect()
    }
}

fn alignment_of(members: &[Member]) -> usize {
    members.iter().map(|member| member.integer.size()).max().unwrap_or(1)
}
