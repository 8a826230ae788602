# SLEET_OPTION(NAME, HELP): --enable-NAME, off by default; sets enable_NAME to yes or no.
AC_DEFUN([SLEET_OPTION], [
  AC_ARG_ENABLE([$1], [AS_HELP_STRING([--enable-$1], [$2])], [], [enable_$1=no])
  AS_CASE([$enable_$1], [yes | no], [],
    [AC_MSG_ERROR([--enable-$1=$enable_$1: yes or no is needed])])
])

# SLEET_EXCLUDES(ONE, OTHER): two options that one program cannot have.
AC_DEFUN([SLEET_EXCLUDES], [
  AS_IF([test "x$enable_$1$enable_$2" = xyesyes],
    [AC_MSG_ERROR([--enable-$1 and --enable-$2 exclude each other: build twice, in two folders])])
])

# SLEET_ADD_CFLAGS(VARIABLE, FLAGS): append each flag that the compiler takes.
# Asked with -Werror, because clang only warns about an option it does not know.
AC_DEFUN([SLEET_ADD_CFLAGS], [
  for sleet_flag in $2; do
    AC_MSG_CHECKING([whether $CC takes $sleet_flag])
    sleet_saved_cflags=$CFLAGS
    CFLAGS="$CFLAGS -Werror $sleet_flag"
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[int probe(void); int probe(void) { return 0; }]])],
      [AC_MSG_RESULT([yes]); AS_VAR_APPEND([$1], [" $sleet_flag"])],
      [AC_MSG_RESULT([no])])
    CFLAGS=$sleet_saved_cflags
  done
])

# SLEET_MUST_LINK(FLAGS, PROGRAM, MESSAGE): the configuration ends where CC does not
# link the program with the flags.
AC_DEFUN([SLEET_MUST_LINK], [
  AC_MSG_CHECKING([whether $CC links with $1])
  sleet_saved_cflags=$CFLAGS
  CFLAGS="$CFLAGS $1"
  AC_LINK_IFELSE([$2], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no]); AC_MSG_ERROR([$3])])
  CFLAGS=$sleet_saved_cflags
])
