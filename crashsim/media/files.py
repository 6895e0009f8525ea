"""Calls on files and directories, cut into micro-operations, for the media that hold files. Trusted.

    create p          one directory entry, new             write p n xy     pages n, n+1 … of what is there already
    mkdir p           one directory entry, new             append p xy      for each page: its content, and a new size
    link p q          one directory entry, new             truncate p n     the size; pages beyond it are zeros again
    unlink p          one directory entry, gone            fsync p          a persist of a file or of a directory
    rename p q        both entries in the same instant     fdatasync p      the same, without what only names it
    sync              a persist of everything              all of it issued before the call, whoever issued it

A page is one letter. A size that is durable without its page shows a zero, written 0; a page beyond the size is not
seen. A path that does not exist, or exists already, makes a call fail without doing anything; so does fdatasync of a
directory, which no standard gives a meaning.

A tree is written as its files and directories in order:   a=xy b= d/ d/c=z
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..medium import Image, Medium, Operation, Persist, Rules, State
from .calls import Call, Program

DATA, NEW_DATA, SIZE, CUT, NAME, CREATED = range(6)
"""What a micro-operation is: a page written over, an appended page, the size that an append leads to, a truncation, a
change of directory entries, the entry of a new file or directory."""

ROOT = 1
ZERO = "0"


class Files:
    """A tree of files on one medium, which a program changes call by call."""

    def __init__(self, rules: Rules, program: Program = ()) -> None:
        """Run this program on an empty tree."""
        self.medium = Medium(rules)
        self.state = State((), ())
        self._place_of: dict[tuple[int, str | int], int] = {}
        self._directories = {ROOT}
        self._newest = ROOT
        self._does: dict[str, Callable[[Call], str]] = {
            "create": self._create,
            "mkdir": self._create,
            "link": self._link,
            "unlink": self._unlink,
            "rename": self._rename,
            "write": self._write,
            "append": self._append,
            "truncate": self._truncate,
            "fsync": self._persist,
            "fdatasync": self._persist,
            "sync": self._sync,
        }
        for call in program:
            self.do(call)

    def do(self, call: Call) -> str:
        """Make one call; returns the name of its error, empty when there is none."""
        if call.failed and call.name not in ("fsync", "fdatasync"):
            return call.outcome
        return self._does[call.name](call)

    def images(self) -> set[str]:
        """Every tree that a power loss can leave now."""
        return {self.tree(each.image) for each in self.medium.images(self.state, lambda image: image)}

    def views(self) -> set[str]:
        """Every tree that a program can read now, without a power loss."""
        states = [self.state, *self.medium.rules.evictions(self.state)]
        return {self.tree(self.medium.visible(each)) for each in states}

    def tree(self, image: Image) -> str:
        """This content of the medium as text."""
        return " ".join(sorted(self._walk(image, ROOT, "")))

    def _walk(self, image: Image, directory: int, path: str) -> Iterator[str]:
        for (inside, name), place in self._place_of.items():
            if inside != directory or not isinstance(name, str) or not image[place]:
                continue
            if image[place] in self._directories:
                yield f"{path}{name}/"
                yield from self._walk(image, image[place], f"{path}{name}/")
            else:
                yield f"{path}{name}={self._content(image, image[place])}"

    def _content(self, image: Image, file: int) -> str:
        def held(page: int) -> int:
            place = self._place_of.get((file, page))
            return 0 if place is None else image[place]

        return "".join(chr(held(page)) if held(page) else ZERO for page in range(held(-1)))

    # --- places ------------------------------------------------------------------------------------------------------

    def _place(self, key: tuple[int, str | int]) -> int:
        """The place of a directory's entry, a file's page, or (page −1) a file's size."""
        if key not in self._place_of:
            self._place_of[key] = len(self._place_of)
            self.state = State((*self.state.base, 0), self.state.outstanding)
        return self._place_of[key]

    def _read(self, key: tuple[int, str | int]) -> int:
        place = self._place(key)
        return self.medium.visible(self.state)[place]

    def _entry(self, path: str) -> tuple[int, str]:
        """The directory that a path's last name lies in, 0 when there is none, and that name."""
        directory = ROOT
        *through, name = path.split("/")
        for each in through:
            directory = self._read((directory, each))
        return (directory if directory in self._directories else 0), name

    def _inode(self, path: str) -> int:
        return ROOT if path == "/" else self._read(self._entry(path))

    # --- calls -------------------------------------------------------------------------------------------------------

    def _issue(self, key: tuple[int, str | int], content: int, scope: tuple[int, ...], note: int, *also: int) -> None:
        """Issue one micro-operation; `also` are places that become empty in the same instant."""
        operation = Operation(self._place(key), content, 0, False, scope, note, tuple((place, 0) for place in also))
        self.state = self.medium.issue(self.state, operation)

    def _name(self, path: str, inode: int, note: int, *, instead_of: str = "") -> str:
        """Give an inode a name, perhaps in place of another one, or with inode 0 take a name away."""
        entry, also = self._entry(path), []
        directories, about = [entry[0]], inode or self._inode(path)
        if instead_of:
            old = self._entry(instead_of)
            also.append(self._place(old))
            directories.append(old[0])
        covered = (*directories, about) if self.medium.rules.names_follow_files else tuple(directories)
        self._issue(entry, inode, covered, note, *also)
        return ""

    def _create(self, call: Call) -> str:
        (path,) = call.arguments
        if not self._entry(path)[0]:
            return "ENOENT"
        if self._inode(path):
            return "EEXIST"
        self._newest += 1
        if call.name == "mkdir":
            self._directories.add(self._newest)
        return self._name(path, self._newest, CREATED)

    def _link(self, call: Call) -> str:
        old, new = call.arguments
        if not self._inode(old) or not self._entry(new)[0]:
            return "ENOENT"
        if self._inode(old) in self._directories or self._inode(new):
            return "EPERM" if self._inode(old) in self._directories else "EEXIST"
        return self._name(new, self._inode(old), NAME)

    def _unlink(self, call: Call) -> str:
        (path,) = call.arguments
        if not self._inode(path):
            return "ENOENT"
        return "EISDIR" if self._inode(path) in self._directories else self._name(path, 0, NAME)

    def _rename(self, call: Call) -> str:
        old, new = call.arguments
        if not self._inode(old) or not self._entry(new)[0]:
            return "ENOENT"
        if self._inode(old) == self._inode(new):
            return ""
        if self._inode(new) in self._directories or (self._inode(new) and self._inode(old) in self._directories):
            return "EISDIR"
        if f"{new}/".startswith(f"{old}/"):
            return "EINVAL"
        return self._name(new, self._inode(old), NAME, instead_of=old)

    def _file(self, path: str) -> int:
        """The inode of a path that is a file; 0 when it is none."""
        inode = self._inode(path)
        return 0 if inode in self._directories else inode

    def _write(self, call: Call) -> str:
        path, first, pages = call.arguments
        file = self._file(path)
        if not file:
            return "ENOENT"
        for page, content in enumerate(call.came_to(pages), int(first)):
            if page >= self._read((file, -1)):
                return "EFBIG"
            self._issue((file, page), ord(content), (file,), DATA)
        return ""

    def _append(self, call: Call) -> str:
        path, pages = call.arguments
        file = self._file(path)
        if not file:
            return "ENOENT"
        for page, content in enumerate(call.came_to(pages), self._read((file, -1))):
            self._issue((file, page), ord(content), (file,), NEW_DATA)
            self._issue((file, -1), page + 1, (file,), SIZE)
        return ""

    def _truncate(self, call: Call) -> str:
        path, size = call.arguments
        file = self._file(path)
        if not file:
            return "ENOENT"
        beyond = [self._place((file, page)) for page in range(int(size), self._read((file, -1)))]
        self._issue((file, -1), int(size), (file,), CUT, *beyond)
        return ""

    def _persist(self, call: Call) -> str:
        (path,) = call.arguments
        if not self._inode(path):
            return "ENOENT"
        if call.name == "fdatasync" and self._inode(path) in self._directories:
            return "EINVAL"
        persist = Persist(self._inode(path), 0, data_only=call.name == "fdatasync")
        if call.outcome == "EINTR":
            return call.outcome
        does = self.medium.fail_persist if call.failed else self.medium.persist
        self.state = does(self.state, persist)
        return call.outcome

    def _sync(self, call: Call) -> str:
        self.state = self.medium.settle(self.state, [not each.forgotten for each in self.state.outstanding])
        return ""
