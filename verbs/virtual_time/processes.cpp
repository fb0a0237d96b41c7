// Threads and processes that a program begins, and programs that it becomes: the run looks for them, and none
// begins with a counter of time stamps that nobody answers for.
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/next_function.hpp"
#include "counter.hpp"
#include "run.hpp"

using namespace weft::verbs;

namespace {

using Arguments = char* const*;
using Spawn = int(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*, Arguments,
                  Arguments);

constinit Next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)> next_pthread_create{
    "pthread_create"};
constinit Next<Spawn> next_spawn{"posix_spawn"};
constinit Next<Spawn> next_spawnp{"posix_spawnp"};
constinit Next<int(const char*)> next_system{"system"};
constinit Next<FILE*(const char*, const char*)> next_popen{"popen"};
constinit Next<int(const char*, Arguments, Arguments)> next_execve{"execve"};
constinit Next<int(const char*, Arguments, Arguments)> next_execvpe{"execvpe"};
constinit Next<int(int, Arguments, Arguments)> next_fexecve{"fexecve"};

void note() {
  if (is_timed()) begins_another();
}

// The arguments that follow the first of execl() and its kind. Result: how many, the null among them.
size_t count_of(va_list arguments) {
  size_t count = 1;
  while (va_arg(arguments, char*) != nullptr) ++count;
  return count;
}

}  // namespace

WEFT_EXPORTED int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*begin)(void*),
                                 void* argument) noexcept {
  note();
  return next_pthread_create(thread, attributes, begin, argument);
}

WEFT_EXPORTED int posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                              const posix_spawnattr_t* attributes, Arguments arguments, Arguments variables) {
  note();
  const ProcessorsCounter counter;
  return next_spawn(process, path, actions, attributes, arguments, variables);
}

WEFT_EXPORTED int posix_spawnp(pid_t* process, const char* file, const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attributes, Arguments arguments,
                               Arguments variables) {
  note();
  const ProcessorsCounter counter;
  return next_spawnp(process, file, actions, attributes, arguments, variables);
}

WEFT_EXPORTED int system(const char* command) {
  note();
  const ProcessorsCounter counter;
  return next_system(command);
}

WEFT_EXPORTED FILE* popen(const char* command, const char* mode) {
  note();
  const ProcessorsCounter counter;
  return next_popen(command, mode);
}

WEFT_EXPORTED int execve(const char* path, Arguments arguments, Arguments variables) noexcept {
  const ProcessorsCounter counter;
  return next_execve(path, arguments, variables);
}

WEFT_EXPORTED int execv(const char* path, Arguments arguments) noexcept {
  return execve(path, arguments, environ);
}

WEFT_EXPORTED int execvpe(const char* file, Arguments arguments, Arguments variables) noexcept {
  const ProcessorsCounter counter;
  return next_execvpe(file, arguments, variables);
}

WEFT_EXPORTED int execvp(const char* file, Arguments arguments) noexcept {
  return execvpe(file, arguments, environ);
}

WEFT_EXPORTED int fexecve(int descriptor, Arguments arguments, Arguments variables) noexcept {
  const ProcessorsCounter counter;
  return next_fexecve(descriptor, arguments, variables);
}

// They may be called between vfork() and the new program, so the list is on the stack.
#define WEFT_EXECUTE(name, execute, variables)                                   \
  WEFT_EXPORTED int name(const char* path, const char* first, ...) noexcept {    \
    va_list given;                                                               \
    va_start(given, first);                                                      \
    const size_t count = count_of(given);                                        \
    va_end(given);                                                               \
    char** arguments = static_cast<char**>(alloca((count + 1) * sizeof(char*))); \
    arguments[0] = const_cast<char*>(first);                                     \
    va_start(given, first);                                                      \
    for (size_t i = 1; i <= count; ++i) arguments[i] = va_arg(given, char*);     \
    [[maybe_unused]] char** own = environ;                                       \
    variables;                                                                   \
    va_end(given);                                                               \
    return execute(path, arguments, own);                                        \
  }
WEFT_EXECUTE(execl, execve, (void)0)
WEFT_EXECUTE(execlp, execvpe, (void)0)
WEFT_EXECUTE(execle, execve, own = va_arg(given, char**))
