#include "file/fs_check.h"

#include <algorithm>

namespace baton::file {

namespace {

struct Refused {
  unsigned long magic;
  std::string_view name;
};

// Not taken from linux/magic.h: it lacks some of these numbers, and old versions lack more.
constexpr Refused kRefused[] = {
    {0x6969, "NFS"},        {0x517B, "SMB"},        {0xFF534D42, "CIFS"},
    {0xFE534D42, "SMB2"},   {0x65735546, "FUSE"},   {0x01021997, "9P"},
    {0x5346414F, "AFS"},    {0x6B414653, "kAFS"},   {0x00C36400, "Ceph"},
    {0x73757245, "Coda"},   {0x01161970, "GFS2"},   {0x7461636F, "OCFS2"},
    {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},   {0x19830326, "BeeGFS"},
    {0xAAD7AAEA, "PanFS"},  {0x564C, "NCP"},        {0x20030528, "OrangeFS"},
    {0x013111A8, "IBRIX"},  {0xBACBACBC, "VMHGFS"}, {0x786F4256, "vboxsf"},
    {0x61636673, "ACFS"},   {0xA501FCF5, "VxFS"},   {0x7C7C6673, "Parallels"},
    {0x6E667364, "nfsd"},   {0x4D44, "FAT"},        {0x2011BAB0, "exFAT"},
    {0x9FA0, "proc"},       {0x62656572, "sysfs"},
};

}  // namespace

std::optional<std::string_view> refused_file_system(unsigned long magic) noexcept {
  // f_type is signed on some machines, so a magic number above 2^31 arrives sign-extended.
  magic &= 0xFFFFFFFF;
  for (const Refused& entry : kRefused) {
    if (entry.magic == magic) return entry.name;
  }
  return std::nullopt;
}

DirectoryVerdict check_directory(const struct stat& status, uid_t euid,
                                 const std::vector<gid_t>& groups) {
  DirectoryVerdict verdict;
  const auto refuse = [&](Errc code, std::string why) {
    verdict.refused = code;
    verdict.why = std::move(why);
    return verdict;
  };
  if (!S_ISDIR(status.st_mode)) return refuse(Errc::connection_failed, "is not a directory");
  if (status.st_mode & S_IWOTH) {
    return refuse(Errc::permission_denied,
                  "is writable by all users, so any of them could end our locks; chmod it to 0700, "
                  "or to 2770 for a group");
  }
  const bool group =
      (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IRWXG) == static_cast<mode_t>(S_IRWXG);
  if (group) {
    const bool member = std::find(groups.begin(), groups.end(), status.st_gid) != groups.end();
    if (status.st_uid != euid && !member) {
      return refuse(Errc::permission_denied,
                    "is for group " + std::to_string(status.st_gid) + " and belongs to user " +
                        std::to_string(status.st_uid) + ", but this process runs as user " +
                        std::to_string(euid) +
                        ", which is not in that group; use a directory of this user, or chown or "
                        "chgrp this one");
    }
    verdict.modes = {0660, 02770, true};
    return verdict;
  }
  if (status.st_uid != euid) {
    return refuse(Errc::permission_denied, "belongs to user " + std::to_string(status.st_uid) +
                                               ", but this process runs as user " +
                                               std::to_string(euid) +
                                               "; to share it in a group, chmod it to 2770");
  }
  if (status.st_mode & S_IWGRP) {
    return refuse(Errc::permission_denied,
                  "is writable by its group, but does not have mode 2770 for a group; chmod it to "
                  "0700, or to 2770");
  }
  return verdict;
}

}  // namespace baton::file
