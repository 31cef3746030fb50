# Maps a filter that another program wrote, here `samples/filter.c`, and looks up keys, one by one and in a batch:
#
#     LD_LIBRARY_PATH=PREFIX/lib julia filter.jl FOLDER
#
# With CUDA.jl, device pointers of a `CuArray` (`UInt64(pointer(array))`) go to the functions that end in `_device`.

const libwarpset = "libwarpset"

# Description of keys: `warpset_keys` of `warpset.h`, with equal fields.
struct Keys
    key_type::UInt32
    width::UInt32
    data::Ptr{UInt8}
    len::Csize_t
    stride::Cssize_t
    offsets::Ptr{UInt8}
    validity::Ptr{UInt8}
    validity_offset::Csize_t
end

const KEY_TYPE_U64 = 7

# Throws the message of an error. Tasks change threads only where they wait, so the message is that of `status`.
function check(status)
    status == 0 || error(unsafe_string(ccall((:warpset_last_error, libwarpset), Cstring, ())))
end

mutable struct Structure
    handle::Ptr{Cvoid}

    # Maps a file. The collector frees the structure.
    function Structure(path::AbstractString)
        out = Ref{Ptr{Cvoid}}()
        check(ccall((:warpset_structure_map, libwarpset), UInt32, (Cstring, Ref{Ptr{Cvoid}}), path, out))
        free(mapped) = ccall((:warpset_structure_free, libwarpset), UInt32, (Ptr{Cvoid},), mapped.handle)
        finalizer(free, new(out[]))
    end
end

Base.unsafe_convert(::Type{Ptr{Cvoid}}, structure::Structure) = structure.handle

function Base.in(key::UInt64, filter::Structure)
    answer = Ref(false)
    check(ccall((:warpset_filter_contains_u64, libwarpset), UInt32, (Ptr{Cvoid}, UInt64, Ref{Bool}), filter, key, answer))
    answer[]
end

# Returns whether each key may be in the filter.
function contains_batch(filter::Structure, keys::Vector{UInt64})
    answers = Vector{Bool}(undef, length(keys))
    GC.@preserve keys begin
        batch = Ref(Keys(KEY_TYPE_U64, 0, pointer(keys), length(keys), 0, C_NULL, C_NULL, 0))
        check(ccall((:warpset_filter_contains, libwarpset), UInt32, (Ptr{Cvoid}, Ref{Keys}, Ptr{Bool}), filter, batch, answers))
    end
    answers
end

function main(folder)
    n = 100_000 # keys in the filter
    keys = UInt64.(0:2n-1) .* 0x9E3779B97F4A7C15
    filter = Structure(joinpath(folder, "fuse.warpset"))
    answers = contains_batch(filter, keys)
    @assert all(answers[1:n])
    @assert all(key in filter for key in keys[1:100])
    others = count(answers[n+1:end])
    @assert others < n ÷ 100
    message = try
        Structure(joinpath(folder, "absent"))
        ""
    catch failure
        failure.msg
    end
    @assert occursin("absent", message)
    println("Julia: $n members, $others false positives")
end

main(ARGS[1])
