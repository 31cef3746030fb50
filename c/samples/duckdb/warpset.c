// Function `warpset_might_contain(filter BLOB, key UBIGINT)` of DuckDB: false if the key is not in the filter. The blob
// is a file of any structure with membership. `samples/duckdb/build` compiles it to an extension.
//
// A filter is opened once per run of rows that share it, thus once per 2,048 rows if all share one.
#define DUCKDB_EXTENSION_NAME warpset
// The first version with this interface, so that all later ones load the extension.
#define DUCKDB_EXTENSION_API_VERSION_MAJOR 1
#define DUCKDB_EXTENSION_API_VERSION_MINOR 2
#define DUCKDB_EXTENSION_API_VERSION_PATCH 0
#include <duckdb_extension.h>
#include <warpset.h>

DUCKDB_EXTENSION_EXTERN

static bool is_null(uint64_t *validity, idx_t row) { return validity && !duckdb_validity_row_is_valid(validity, row); }

static void might_contain(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector output) {
    duckdb_vector filters = duckdb_data_chunk_get_vector(input, 0);
    duckdb_string_t *blobs = duckdb_vector_get_data(filters);
    uint64_t *validity = duckdb_vector_get_validity(filters);
    const uint64_t *keys = duckdb_vector_get_data(duckdb_data_chunk_get_vector(input, 1));
    uint8_t *answers = duckdb_vector_get_data(output);
    idx_t rows = duckdb_data_chunk_get_size(input);

    for (idx_t begin = 0, end; begin < rows; begin = end) {
        end = begin + 1;
        if (is_null(validity, begin)) continue; // DuckDB answers NULL
        const char *blob = duckdb_string_t_data(&blobs[begin]);
        while (end < rows && !is_null(validity, end) && duckdb_string_t_data(&blobs[end]) == blob) end++;

        warpset_structure *filter = NULL;
        warpset_keys batch = warpset_keys_u64(keys + begin, end - begin);
        warpset_status status = warpset_structure_from_bytes((const uint8_t *)blob, duckdb_string_t_length(blobs[begin]),
                                                             NULL, &filter);
        if (status == WARPSET_STATUS_OK) status = warpset_filter_contains(filter, &batch, answers + begin);
        if (status != WARPSET_STATUS_OK) duckdb_scalar_function_set_error(info, warpset_last_error());
        warpset_structure_free(filter);
        if (status != WARPSET_STATUS_OK) return;
    }
}

DUCKDB_EXTENSION_ENTRYPOINT(duckdb_connection connection, duckdb_extension_info info,
                            struct duckdb_extension_access *access) {
    duckdb_logical_type blob = duckdb_create_logical_type(DUCKDB_TYPE_BLOB);
    duckdb_logical_type key = duckdb_create_logical_type(DUCKDB_TYPE_UBIGINT);
    duckdb_logical_type answer = duckdb_create_logical_type(DUCKDB_TYPE_BOOLEAN);
    duckdb_scalar_function function = duckdb_create_scalar_function();
    duckdb_scalar_function_set_name(function, "warpset_might_contain");
    duckdb_scalar_function_add_parameter(function, blob);
    duckdb_scalar_function_add_parameter(function, key);
    duckdb_scalar_function_set_return_type(function, answer);
    duckdb_scalar_function_set_function(function, might_contain);
    bool registered = duckdb_register_scalar_function(connection, function) == DuckDBSuccess;
    if (!registered) access->set_error(info, "warpset_might_contain cannot be registered");
    duckdb_destroy_scalar_function(&function);
    duckdb_destroy_logical_type(&answer);
    duckdb_destroy_logical_type(&key);
    duckdb_destroy_logical_type(&blob);
    return registered;
}
