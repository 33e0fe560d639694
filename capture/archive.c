/* Zip archives in memory, as torch.export.save and torch.save write them.
 *
 * minizip reads the directory and says where each entry's bytes lie; stored entries are then parts
 * of the mapping and are not copied, deflated ones are unpacked by zlib. Nothing in the directory
 * is trusted: entries must lie within the file and not overlap (so that a small file cannot
 * describe a large one by naming its bytes many times), names must be plain relative paths, each
 * once, and every entry's CRC is checked when it is first read. Bytes that unpacking allocates are
 * taken from the caller's budget. No name is ever used as a path on disk.
 *
 * Source: PKWARE, APPNOTE.TXT 6.3.10. */
#include <inttypes.h>
#include <minizip/unzip.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "capture/capture_int.h"
#include "egraph/base/vec.h"

enum { MAX_NAME = 1000, MAX_ENTRIES = 1 << 20, STORED = 0, DEFLATED = 8 };

typedef struct member {
  char *name;
  uint64_t begin, packed, size;
  uint32_t crc;
  int method;
  cap_bytes *bytes; /* once read */
} member;

struct cap_archive {
  cap_bytes *file;
  uint64_t *budget;
  size_t n, cap;
  member *member;
  cap_names names;
};

static iso_code no_memory(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- minizip's view of the bytes ---- */

typedef struct cursor {
  const cap_bytes *file;
  uint64_t at;
} cursor;

static voidpf ZCALLBACK memory_open(voidpf opaque, const void *name, int mode) {
  (void)name;
  return (mode & ZLIB_FILEFUNC_MODE_READWRITEFILTER) == ZLIB_FILEFUNC_MODE_READ ? opaque : NULL;
}
static uLong ZCALLBACK memory_read(voidpf opaque, voidpf stream, void *buf, uLong size) {
  (void)opaque;
  cursor *c = stream;
  uint64_t left = c->at < c->file->n ? c->file->n - c->at : 0;
  uLong n = size < left ? size : (uLong)left;
  if (n > 0) memcpy(buf, c->file->at + c->at, n);
  c->at += n;
  return n;
}
static ZPOS64_T ZCALLBACK memory_tell(voidpf opaque, voidpf stream) {
  (void)opaque;
  return ((const cursor *)stream)->at;
}
static long ZCALLBACK memory_seek(voidpf opaque, voidpf stream, ZPOS64_T offset, int origin) {
  (void)opaque;
  cursor *c = stream;
  uint64_t from = origin == ZLIB_FILEFUNC_SEEK_SET   ? 0
                  : origin == ZLIB_FILEFUNC_SEEK_CUR ? c->at
                                                     : c->file->n;
  uint64_t to;
  if (__builtin_add_overflow(from, offset, &to) || to > c->file->n) return -1;
  c->at = to;
  return 0;
}
static int ZCALLBACK memory_close(voidpf opaque, voidpf stream) {
  (void)opaque, (void)stream;
  return 0;
}

/* ---- the directory ---- */

/* Names are keys only; one that would be dangerous as a path is a sign of an attack all the same.
 */
static iso_code check_name(const char *name, size_t n, iso_error *err) {
  if (n == 0 || strlen(name) != n) return iso_fail(err, ISO_FORMAT, "an entry has no proper name");
  bool bad = name[0] == '/' || strchr(name, '\\') != NULL;
  for (const char *p = name; !bad && p != NULL; p = strchr(p, '/')) {
    p += *p == '/';
    bad = strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0');
  }
  return bad ? iso_fail(err, ISO_FORMAT, "entry \"%.120s\" leads out of the archive", name)
             : ISO_OK;
}

static iso_code check_member(const member *m, const unz_file_info64 *info, size_t n_file,
                             iso_error *err) {
  uint64_t end;
  if (info->flag & 1) return iso_fail(err, ISO_UNSUPPORTED, "is encrypted");
  if (m->method != STORED && m->method != DEFLATED)
    return iso_fail(err, ISO_UNSUPPORTED,
                    "is compressed by method %d; stored and deflated entries can be read",
                    m->method);
  if (m->method == STORED && m->packed != m->size)
    return iso_fail(err, ISO_FORMAT, "is stored in %" PRIu64 " bytes and said to hold %" PRIu64,
                    m->packed, m->size);
  if (__builtin_add_overflow(m->begin, m->packed, &end) || end > n_file)
    return iso_fail(err, ISO_FORMAT, "ends at byte %" PRIu64 " of %zu (is the file truncated?)",
                    end, n_file);
  return ISO_OK;
}

static iso_code add_member(cap_archive *a, unzFile zip, iso_error *err) {
  char name[MAX_NAME + 1] = {0};
  unz_file_info64 info;
  int method, level;
  if (unzGetCurrentFileInfo64(zip, &info, name, MAX_NAME, NULL, 0, NULL, 0) != UNZ_OK ||
      info.size_filename > MAX_NAME)
    return iso_fail(err, ISO_FORMAT, "the directory of the zip file is malformed");
  iso_code code = check_name(name, info.size_filename, err);
  if (code != ISO_OK) return code;
  if (name[strlen(name) - 1] == '/') return ISO_OK; /* a folder */
  if (!iso_grow(a->member, a->cap, a->n + 1)) return no_memory(err);
  member *m = &a->member[a->n];
  *m = (member){.packed = info.compressed_size,
                .size = info.uncompressed_size,
                .crc = (uint32_t)info.crc,
                .method = (int)info.compression_method};
  int status = unzOpenCurrentFile2(zip, &method, &level, 1 /* raw: nothing is decoded */);
  if (status == UNZ_INTERNALERROR) return no_memory(err);
  if (status == UNZ_OK) m->begin = unzGetCurrentFileZStreamPos64(zip);
  if (status == UNZ_OK) unzCloseCurrentFile(zip);
  code = status == UNZ_OK ? check_member(m, &info, a->file->n, err)
                          : iso_fail(err, ISO_FORMAT, "its header is not what the directory says");
  if (code == ISO_OK && cap_names_find(&a->names, name) != CAP_NO_INDEX)
    code = iso_fail(err, ISO_FORMAT, "is there twice");
  if (code != ISO_OK) {
    iso_prefix(err, "entry \"%.120s\": ", name);
    return code;
  }
  if ((m->name = strdup(name)) == NULL) return no_memory(err);
  a->n++;
  return cap_names_add(&a->names, m->name, a->n - 1) ? ISO_OK : no_memory(err);
}

static int by_begin(const void *pa, const void *pb) {
  const member *a = *(const member *const *)pa, *b = *(const member *const *)pb;
  return a->begin < b->begin ? -1 : a->begin > b->begin;
}

static iso_code check_overlaps(const cap_archive *a, iso_error *err) {
  const member **order = malloc((a->n + 1) * sizeof *order);
  if (order == NULL) return no_memory(err);
  for (size_t i = 0; i < a->n; i++) order[i] = &a->member[i];
  qsort(order, a->n, sizeof *order, by_begin);
  iso_code code = ISO_OK;
  for (size_t i = 1; i < a->n && code == ISO_OK; i++)
    if (order[i - 1]->begin + order[i - 1]->packed > order[i]->begin)
      code = iso_fail(err, ISO_FORMAT, "entries \"%.80s\" and \"%.80s\" overlap",
                      order[i - 1]->name, order[i]->name);
  free(order);
  return code;
}

static iso_code read_directory(cap_archive *a, unzFile zip, iso_error *err) {
  unz_global_info64 global;
  if (unzGetGlobalInfo64(zip, &global) != UNZ_OK || global.number_entry == 0)
    return iso_fail(err, ISO_FORMAT, "the zip file is empty");
  if (global.number_entry > MAX_ENTRIES)
    return iso_fail(err, ISO_LIMIT, "%" PRIu64 " entries are too many",
                    (uint64_t)global.number_entry);
  int status = unzGoToFirstFile(zip);
  iso_code code = ISO_OK;
  uint64_t seen = 0;
  for (; status == UNZ_OK && code == ISO_OK; status = unzGoToNextFile(zip), seen++)
    code = add_member(a, zip, err);
  if (code != ISO_OK) return code;
  if (status != UNZ_END_OF_LIST_OF_FILE || seen != global.number_entry)
    return iso_fail(err, ISO_FORMAT, "the directory of the zip file is malformed");
  return check_overlaps(a, err);
}

static bool begins(const cap_bytes *file, const char *with) {
  return file->n >= strlen(with) && memcmp(file->at, with, strlen(with)) == 0;
}

/* Says of a file that is no archive which format it seems to have, by its first bytes, and how to
 * convert it. */
static const char *what_it_is(const cap_bytes *file) {
  uint64_t header = 0;
  for (unsigned i = 0; i < 8 && file->n > 8; i++) header |= (uint64_t)file->at[i] << (8 * i);
  if (begins(file, "{")) return "is no archive: a capture is the folder that holds graph.json";
  if (begins(file, "HloModule")) return "is HLO text: isomer-capture hlo makes a capture of it";
  if (file->n > 8 && file->at[8] == '{' && header < file->n)
    return "holds weights without a graph (safetensors): isomer-capture captures a model";
  if (begins(file, "\x80\x02"))
    return "is an old file of torch.save, without a graph: torch.export.save writes one";
  if (file->n > 2 && file->at[0] == 0x08 && file->at[1] < 32 && file->at[2] > 0)
    return "seems to be an ONNX model, which is not read: capture the module it was made from";
  return "is neither a capture's folder nor an archive of torch.export.save";
}

iso_code cap_archive_open(cap_bytes *file, uint64_t *budget, cap_archive **out, iso_error *err) {
  cursor at = {file, 0};
  zlib_filefunc64_def f = {.zopen64_file = memory_open,
                           .zread_file = memory_read,
                           .ztell64_file = memory_tell,
                           .zseek64_file = memory_seek,
                           .zclose_file = memory_close,
                           .zerror_file = memory_close,
                           .opaque = &at};
  if (file->n < 4 || memcmp(file->at, "PK", 2) != 0)
    return iso_fail(err, ISO_FORMAT, "%s", what_it_is(file));
  unzFile zip = unzOpen2_64("", &f);
  if (zip == NULL) return iso_fail(err, ISO_FORMAT, "is no complete zip file (is it truncated?)");
  cap_archive *a = calloc(1, sizeof *a);
  iso_code code = ISO_OK;
  if (a == NULL) code = no_memory(err);
  if (code == ISO_OK) {
    a->file = cap_bytes_ref(file);
    a->budget = budget;
    code = read_directory(a, zip, err);
  }
  unzClose(zip);
  if (code == ISO_OK) *out = a;
  else cap_archive_close(a);
  return code;
}

void cap_archive_close(cap_archive *a) {
  if (a == NULL) return;
  for (size_t i = 0; i < a->n; i++) {
    free(a->member[i].name);
    cap_bytes_unref(a->member[i].bytes);
  }
  free(a->member);
  cap_names_fini(&a->names);
  cap_bytes_unref(a->file);
  free(a);
}

size_t cap_archive_count(const cap_archive *a) { return a->n; }
const char *cap_archive_name(const cap_archive *a, size_t i) { return a->member[i].name; }
bool cap_archive_has(const cap_archive *a, const char *name) {
  return cap_names_find(&a->names, name) != CAP_NO_INDEX;
}

/* ---- entries ---- */

static uInt at_most(uint64_t n) {
  return n < (1u << 30) ? (uInt)n : 1u << 30; /* zlib counts in 32 bits */
}

/* Returns: whether the entry unpacks to exactly the bytes of `to`; in `no_mem` why not. */
static bool inflate_all(const unsigned char *from, uint64_t packed, cap_bytes *to, bool *no_mem) {
  z_stream z = {0};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) {
    *no_mem = true;
    return false;
  }
  uint64_t taken = 0, made = 0;
  int status = Z_OK;
  unsigned char over; /* one more byte than there should be is seen here */
  while (status == Z_OK) {
    z.next_in = (Bytef *)(uintptr_t)(from + taken);
    const uInt in = z.avail_in = at_most(packed - taken);
    z.next_out = made < to->n ? to->at + made : &over;
    const uInt room = z.avail_out = made < to->n ? at_most(to->n - made) : 1;
    status = inflate(&z, Z_NO_FLUSH);
    taken += in - z.avail_in;
    made += room - z.avail_out;
    if (made > to->n) break;
  }
  *no_mem = status == Z_MEM_ERROR;
  inflateEnd(&z);
  return status == Z_STREAM_END && made == to->n && taken == packed;
}

static iso_code unpack(cap_archive *a, member *m, iso_error *err) {
  const unsigned char *from = a->file->at + m->begin;
  if (m->method == STORED)
    return cap_bytes_part(a->file, (size_t)m->begin, (size_t)m->size, &m->bytes, err);
  if (m->size > *a->budget)
    return iso_fail(err, ISO_LIMIT,
                    "unpacked, the file takes more memory than a file of its size may");
  *a->budget -= m->size;
  cap_bytes *b = NULL;
  bool no_mem = false;
  iso_code code = cap_bytes_new((size_t)m->size, &b, err);
  if (code == ISO_OK && !inflate_all(from, m->packed, b, &no_mem))
    code = no_mem ? no_memory(err) : iso_fail(err, ISO_FORMAT, "is not compressed properly");
  if (code == ISO_OK) m->bytes = b;
  else cap_bytes_unref(b);
  return code;
}

iso_code cap_archive_read(cap_archive *a, const char *name, cap_bytes **out, iso_error *err) {
  size_t i = cap_names_find(&a->names, name);
  if (i == CAP_NO_INDEX) return iso_fail(err, ISO_FORMAT, "there is no entry \"%.120s\"", name);
  member *m = &a->member[i];
  if (m->bytes == NULL) {
    iso_code code = unpack(a, m, err);
    if (code == ISO_OK && crc32_z(0, m->bytes->at, m->bytes->n) != m->crc) {
      cap_bytes_unref(m->bytes);
      m->bytes = NULL;
      code = iso_fail(err, ISO_FORMAT, "its CRC is not the one recorded: the file is damaged");
    }
    if (code != ISO_OK) {
      iso_prefix(err, "entry \"%.120s\": ", name);
      return code;
    }
  }
  *out = cap_bytes_ref(m->bytes);
  return ISO_OK;
}
