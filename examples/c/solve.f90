! Solves a dense system A x = b by Gaussian elimination with partial pivoting. The processes stand
! in one row, and the columns of A are dealt to them like cards: column j belongs to process
! mod(j - 1, number of processes). Every process holds all of b. Any number of processes will do:
!
!     onesided run -n 4 ./solve
!
! All of them run this same program, and all communication is by calls of the BLACS.
program solve
   implicit none
   integer, parameter :: n = 300
   double precision, parameter :: tolerance = 30
   integer :: me, processes, ctxt, nprow, npcol, myrow, mycol
   integer :: j, k, pivot, owner, local, none(1)
   double precision, allocatable :: a(:, :), kept(:, :)
   double precision :: b(n), x(n), column(n), residual(n), biggest(2), scaled

   ! A grid of one row with a column for each process.
   call blacs_pinfo(me, processes)
   call blacs_get(-1, 0, ctxt)
   call blacs_gridinit(ctxt, 'Row', 1, processes)
   call blacs_gridinfo(ctxt, nprow, npcol, myrow, mycol)
   local = (n - mycol + npcol - 1)/npcol
   allocate (a(n, local), kept(n, local))

   ! Process 0 makes the system and deals out its columns. A send returns as soon as the array may
   ! be used again, so that the next column can be written into it, even one for process 0 itself.
   do j = 1, n
      owner = mod(j - 1, npcol)
      if (mycol == 0) then
         call random_column(j, column)
         call dgesd2d(ctxt, n, 1, column, n, 0, owner)
      end if
      if (mycol == owner) call dgerv2d(ctxt, n, 1, a(1, place(j)), n, 0, 0)
   end do

   ! The right-hand side goes to all: one process broadcasts ("bs"), the others receive ("br").
   if (mycol == 0) then
      call random_column(n + 1, b)
      call dgebs2d(ctxt, 'All', ' ', n, 1, b, n)
   else
      call dgebr2d(ctxt, 'All', ' ', n, 1, b, n, 0, 0)
   end if
   kept = a
   residual = b

   ! Elimination: the owner of column k chooses the pivot and tells all which row it is and what
   ! multiples of it the rows below must lose; each process changes its own columns and its b.
   do k = 1, n
      owner = mod(k - 1, npcol)
      if (mycol == owner) then
         pivot = k - 1 + maxloc(abs(a(k:n, place(k))), dim=1)
         column = a(:, place(k))
         call swap(column(k), column(pivot))
         if (column(k) == 0) then
            print *, 'the matrix is singular'
            call blacs_abort(ctxt, 1)
         end if
         column(k + 1:n) = column(k + 1:n)/column(k)
         call igebs2d(ctxt, 'All', ' ', 1, 1, pivot, 1)
         call dgebs2d(ctxt, 'All', ' ', n - k + 1, 1, column(k), n)
      else
         call igebr2d(ctxt, 'All', ' ', 1, 1, pivot, 1, 0, owner)
         call dgebr2d(ctxt, 'All', ' ', n - k + 1, 1, column(k), n, 0, owner)
      end if
      call swap(b(k), b(pivot))
      b(k + 1:n) = b(k + 1:n) - column(k + 1:n)*b(k)
      do j = k, n
         if (mycol /= mod(j - 1, npcol)) cycle
         call swap(a(k, place(j)), a(pivot, place(j)))
         a(k + 1:n, place(j)) = a(k + 1:n, place(j)) - column(k + 1:n)*a(k, place(j))
      end do
   end do

   ! Back substitution: the owner of column k finds x(k) and sends it with the column.
   do k = n, 1, -1
      owner = mod(k - 1, npcol)
      if (mycol == owner) then
         column(1:k) = a(1:k, place(k))
         column(k) = b(k)/column(k)
         call dgebs2d(ctxt, 'All', ' ', k, 1, column, n)
      else
         call dgebr2d(ctxt, 'All', ' ', k, 1, column, n, 0, owner)
      end if
      x(k) = column(k)
      b(1:k - 1) = b(1:k - 1) - column(1:k - 1)*x(k)
   end do

   ! The residual b - A x: each process knows the part of its columns, process 0 gets the sum.
   if (mycol /= 0) residual = 0
   do j = 1, n
      if (mycol == mod(j - 1, npcol)) residual = residual - kept(:, place(j))*x(j)
   end do
   call dgsum2d(ctxt, 'All', ' ', n, 1, residual, n, 0, 0)

   ! The largest elements of A and x, by magnitude; the places they come from are not wanted (-1).
   biggest = [max(0d0, maxval(abs(kept))), maxval(abs(x))]
   call dgamx2d(ctxt, 'All', ' ', 2, 1, biggest, 2, none, none, -1, 0, 0)

   if (mycol == 0) then
      scaled = maxval(abs(residual))/(epsilon(1d0)*n*biggest(1)*biggest(2))
      print '(a,i0,a,i0,a)', 'system of ', n, ' equations on ', processes, ' processes'
      print '(a,es9.2,a,f0.3)', 'largest residual ', maxval(abs(residual)), ', scaled ', scaled
      if (.not. scaled < tolerance) then
         print '(a)', 'the residual is too large'
         call blacs_abort(ctxt, 2)
      end if
   end if
   call blacs_gridexit(ctxt)
   call blacs_exit(0)

contains

   ! Where column j stands among the columns of its owner.
   integer function place(j)
      integer, intent(in) :: j
      place = (j - 1)/npcol + 1
   end function

   subroutine swap(p, q)
      double precision, intent(inout) :: p, q
      double precision :: t
      t = p
      p = q
      q = t
   end subroutine

   ! Numbers between -1 and 1 that look random and are the same in every run.
   subroutine random_column(j, v)
      integer, intent(in) :: j
      double precision, intent(out) :: v(n)
      integer :: i
      do i = 1, n
         v(i) = 2*modulo(sin(12.9898d0*i + 78.233d0*j)*43758.5453d0, 1d0) - 1
      end do
   end subroutine
end program
