! Every routine of the Fortran interface in every precision, against serial loops, on three grids of
! a job of four processes: sends and receives of rectangles and trapezoids, broadcasts and combines
! in every scope and topology. Compile it with -fdefault-integer-8 for a library of 64-bit integers.
!
! Prints a line FAIL for each failure and TABLE <routine> <checks> <failures> at the end.
program routines_in_fortran
   use matrices
   use calls
   implicit none
   integer :: me, processes, system, p, k
   double precision :: begin
   double precision, external :: dwalltime00

   call blacs_pinfo(me, processes)
   if (processes /= 4) then
      if (me == 0) print '(a)', 'run this with 4 processes'
      call blacs_exit(0)
      stop 2
   end if
   begin = dwalltime00()
   call check_grid('Row-major', 2, 2)
   call check_grid('c', 4, 1)
   call check_grid('R', 1, 3)
   call check_set_up
   call report
   if (me == 0) print '(a,f0.2,a)', 'TIME ', dwalltime00() - begin, ' s'
   call blacs_exit(0)
   if (sum(failures) > 0) stop 1

contains

   subroutine check_grid(order, nprow, npcol)
      character(len=*), intent(in) :: order
      integer, intent(in) :: nprow, npcol
      integer :: ctxt, rows, cols, row, col
      call blacs_get(-1, 0, ctxt)
      call blacs_gridinit(ctxt, order, nprow, npcol)
      call blacs_gridinfo(ctxt, rows, cols, row, col)
      if (row < 0) return
      do p = 1, 5
         call check_points(ctxt, p, rows, cols, row, col)
         call check_scope(ctxt, p, 'Row', cols, col, row*cols, 1, cols)
         call check_scope(ctxt, p, 'c', rows, row, col, cols, cols)
         call check_scope(ctxt, p, 'A', rows*cols, row*cols + col, 0, 1, cols)
      end do
      call blacs_barrier(ctxt, 'All')
      call blacs_gridexit(ctxt)
   end subroutine

   ! Everyone sends to its successor in the grid and receives from its predecessor.
   subroutine check_points(ctxt, p, rows, cols, row, col)
      integer, intent(in) :: ctxt, p, rows, cols, row, col
      character(len=4), parameter :: parts(5) = ['    ', 'UppU', 'U  N', 'LowU', 'L  N']
      integer, parameter :: shapes(2, 6) = reshape([4, 6, 6, 4, 5, 5, 1, 1, 0, 3, 3, 0], [2, 6])
      integer :: part, s, more, m, n, lda, to, from, process, key
      character(len=60) :: text
      process = row*cols + col
      to = mod(process + 1, rows*cols)
      from = mod(process - 1 + rows*cols, rows*cols)
      do part = 1, 5
         do s = 1, 6
            do more = 0, 2
               m = shapes(1, s)
               n = shapes(2, s)
               key = part + 5*s + 30*more
               lda = max(m, 1) + more
               associate (uplo => parts(part)(1:3), diag => parts(part)(4:4))
                  write (text, '(5a,3i4)') 'uplo ', uplo, ' diag ', diag, ' m n lda', m, n, lda
                  call fill(p, key, process, m, n, lda)
                  call send(p, ctxt, uplo, diag, m, n, lda, to/cols, mod(to, cols))
                  call check_matrix(merge(1, 3, uplo == ' '), p, text)
                  call fill(p, key, process, m, n, lda + 1)
                  call expect(p, key, from, uplo, diag, m, n, lda + 1)
                  call receive(p, ctxt, uplo, diag, m, n, lda + 1, from/cols, mod(from, cols))
                  call check_matrix(merge(2, 4, uplo == ' '), p, text)
               end associate
            end do
         end do
      end do
   end subroutine

   ! Broadcasts and combines of one scope. Its member k, one of size, is process first + k*step of
   ! the grid; this process is member place.
   subroutine check_scope(ctxt, p, scope, size, place, first, step, cols)
      integer, intent(in) :: ctxt, p, size, place, first, step, cols
      character(len=*), intent(in) :: scope
      character(len=4), parameter :: parts(3) = ['    ', 'U  N', 'lowU']
      integer :: t, part, root, process, r, c, m, n, lda, operation
      character(len=60) :: text
      process = first + place*step
      m = 4
      n = 6
      do t = 1, len(topologies)
         do part = 1, 3
            root = mod(t + part, size)
            r = (first + root*step)/cols
            c = mod(first + root*step, cols)
            lda = m + mod(t, 3)
            associate (top => topologies(t:t), uplo => parts(part)(1:3), diag => parts(part)(4:4))
               write (text, '(7a)') scope, ' top ', top, ' uplo ', uplo, ' diag ', diag
               call fill(p, t, process, m, n, lda)
               if (place == root) then
                  call broadcast(p, ctxt, scope, top, uplo, diag, m, n, lda)
                  call check_matrix(merge(5, 7, uplo == ' '), p, text)
               else
                  call expect(p, t, r*cols + c, parts(part)(1:1), diag, m, n, lda)
                  call receive_broadcast(p, ctxt, scope, top, uplo, diag, m, n, lda, r, c)
                  call check_matrix(merge(6, 8, uplo == ' '), p, text)
               end if
            end associate
         end do
         do operation = 9, 11
            call combine(ctxt, p, scope, size, place, first, step, cols, operation, t, 0)
            call combine(ctxt, p, scope, size, place, first, step, cols, operation, t, -1)
         end do
      end do
   end subroutine

   ! all = -1: every member wants the result, without the places; 0: one member, with the places.
   subroutine combine(ctxt, p, scope, size, place, first, step, cols, operation, t, all)
      integer, intent(in) :: ctxt, p, size, place, first, step, cols, operation, t, all
      character(len=*), intent(in) :: scope
      integer, parameter :: m = 5, n = 3, lda = 7, ldia = 6
      integer :: ra(ldia*n + 1), ca(ldia*n + 1), ra_want(ldia*n + 1), ca_want(ldia*n + 1)
      integer :: i, j, k, other, root, best, r, c
      complex(wide) :: result, value
      logical :: wins
      character(len=60) :: text
      root = merge(0, mod(t, size), all == -1)
      ra = -7
      ca = -7
      ra_want = -7
      ca_want = -7
      call fill(p, t, first + place*step, m, n, lda)
      do j = 0, n - 1
         do i = 0, m - 1
            best = first + root*step
            result = value_of(p, t, best, i, j)
            do k = 1, size - 1
               other = first + mod(root + k, size)*step
               value = value_of(p, t, other, i, j)
               if (operation == 9) then
                  result = result + value
                  cycle
               end if
               wins = merge(norm(value) > norm(result), norm(value) < norm(result), operation == 10)
               if (all == -1 .and. norm(value) == norm(result)) wins = real(value) > real(result) &
                  .or. (real(value) == real(result) .and. aimag(value) > aimag(result))
               if (wins) best = other
               if (wins) result = value
            end do
            want(start + j*lda + i) = result
            if (all == -1) cycle
            ra_want(1 + j*ldia + i) = best/cols
            ca_want(1 + j*ldia + i) = mod(best, cols)
         end do
      end do
      r = merge(-1, (first + root*step)/cols, all == -1)
      c = merge(-1, mod(first + root*step, cols), all == -1)
      associate (top => topologies(t:t), ld => merge(-1, ldia, all == -1))
         write (text, '(3a,3i3)') scope, ' top ', top, r, c, ld
         select case (operation)
         case (9); call add(p, ctxt, scope, top, m, n, lda, r, c)
         case (10); call largest(p, ctxt, scope, top, m, n, lda, ra, ca, ld, r, c)
         case (11); call smallest(p, ctxt, scope, top, m, n, lda, ra, ca, ld, r, c)
         end select
      end associate
      ! A member that does not want the result keeps only its guard cells.
      if (all == 0 .and. place /= root) then
         do j = 0, n - 1
            do i = 0, m - 1
               want(start + j*lda + i) = get(p, start + j*lda + i)
               ra_want(1 + j*ldia + i) = ra(1 + j*ldia + i)
               ca_want(1 + j*ldia + i) = ca(1 + j*ldia + i)
            end do
         end do
      end if
      call check_matrix(operation, p, text)
      if (operation > 9) call check(operation, p, &
         count(ra /= ra_want) + count(ca /= ca_want) == 0, text//' places')
   end subroutine

   double precision function norm(value)
      complex(wide), intent(in) :: value
      norm = abs(real(value)) + abs(aimag(value))
   end function

   ! The rest of the interface; a mistake ends the job.
   subroutine check_set_up
      integer, external :: blacs_pnum, ksendid, krecvid, kbsid, kbrid
      integer, external :: blacs2sys_handle, sys2blacs_handle
      double precision, external :: dcputime00
      integer :: ctxt, again, count, map(3, 2), row, col, rows, cols, value, ids(2)
      double precision :: time, cpu
      call blacs_setup(again, count)
      call require(again == me .and. count == 4, 'blacs_setup')
      call blacs_get(0, 0, system)
      system = sys2blacs_handle(blacs2sys_handle(system))
      map = reshape([3, 1, 99, 2, 0, 99], [3, 2])
      ctxt = system
      call blacs_gridmap(ctxt, map, 3, 2, 2)
      call blacs_gridinfo(ctxt, rows, cols, row, col)
      call require(rows == 2 .and. cols == 2 .and. map(row + 1, col + 1) == me, 'blacs_gridmap')
      call blacs_pcoord(ctxt, blacs_pnum(ctxt, row, col), rows, cols)
      call require(rows == row .and. cols == col, 'blacs_pcoord')
      call require(blacs_pnum(ctxt, 2, 0) == -1, 'blacs_pnum')
      call blacs_set(ctxt, 15, 1)
      call blacs_get(ctxt, 15, value)
      call require(value == 1, 'blacs_set')
      call require(ksendid(ctxt, 0, 1) == krecvid(ctxt, 0, 1), 'ksendid')
      ids(1) = kbsid(ctxt, 'All')
      ids(2) = kbrid(ctxt, 'a', 0, 0)
      call require(all(ids >= 0), 'kbsid')
      time = dwalltime00()
      call blacs_barrier(ctxt, 'R')
      call blacs_barrier(ctxt, 'Column')
      call require(dwalltime00() >= time, 'dwalltime00')
      cpu = dcputime00()
      call require(cpu >= -1 .and. .not. (cpu > -1 .and. cpu < 0), 'dcputime00')
      call blacs_freebuff(ctxt, 1)
      call blacs_gridexit(ctxt)
      call free_blacs_system_handle(system)
   end subroutine

   subroutine require(good, name)
      logical, intent(in) :: good
      character(len=*), intent(in) :: name
      if (good) return
      print '(2a)', 'FAIL ', name
      call blacs_abort(-1, 1)
   end subroutine

   subroutine report
      integer :: ctxt
      call blacs_get(-1, 0, ctxt)
      call blacs_gridinit(ctxt, 'r', 1, 4)
      call igsum2d(ctxt, 'a', ' ', 11, 5, checks, 11, -1, -1)
      call igsum2d(ctxt, 'a', ' ', 11, 5, failures, 11, -1, -1)
      do p = 1, 5
         do k = 1, 11
            if (me == 0) print '(3a,2(1x,i0))', 'TABLE ', precisions(p:p), routines(k), &
               checks(k, p), failures(k, p)
         end do
      end do
      call blacs_gridexit(ctxt)
   end subroutine
end program
